INSERT INTO orders_and_payments.public.orders VALUES
  (1, 'ann', 25.00, '2026-01-05 09:00:00'),
  (2, 'bob', 60.50, '2026-01-05 09:05:00'),
  (3, 'cleo', 12.90, '2026-01-05 09:10:00');

INSERT INTO orders_and_payments.public.payments VALUES
  (1, 25.00, '2026-01-05 09:02:00'),
  (3, 12.90, '2026-01-05 09:55:00');

-- Time passes in both streams, so order 2 can no longer be paid.
INSERT INTO orders_and_payments.public.orders VALUES (4, 'dan', 8.00, '2026-01-05 12:00:00');
INSERT INTO orders_and_payments.public.payments VALUES (4, 8.00, '2026-01-05 12:00:01');
