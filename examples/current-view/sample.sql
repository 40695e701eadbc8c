-- What the shop's programs do. A row with an existing key replaces that row: Bob has moved to Rome.
INSERT INTO current_view.public.customers VALUES
  (1, 'Ann', 'Oslo'),
  (2, 'Bob', 'Oslo'),
  (3, 'Cleo', 'Rome');
INSERT INTO current_view.public.customers VALUES (2, 'Bob', 'Rome');
