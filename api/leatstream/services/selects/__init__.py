"""SELECT as a question: rows for the one who asks, by a driver or by a view's database."""
