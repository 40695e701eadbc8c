INSERT INTO s3_landing.public.orders VALUES
  (1, 'lamp', 25.00, '2026-01-05 09:00:00'),
  (2, 'chair', 60.50, '2026-01-05 18:30:00'),
  (3, 'rug', 99.90, '2026-01-06 08:15:00');
