INSERT INTO alerts.public.orders VALUES
  (1, 'lamp', '2026-01-05 09:00:10'),
  (2, 'lamp', '2026-01-05 09:01:10'),
  (3, 'chair', '2026-01-05 09:01:30'),
  (4, 'lamp', '2026-01-05 09:02:10'),
  (5, 'lamp', '2026-01-05 09:03:10'),
  -- Time passes: the windows before have closed.
  (6, 'chair', '2026-01-05 09:20:00');
