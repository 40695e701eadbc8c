"""Functions of users: their sources, what is made of them, and how a job gets them."""
