INSERT INTO sessions.public.clicks VALUES
  ('ann', '/', '2026-01-05 09:00:00'),
  ('ann', '/lamps', '2026-01-05 09:10:00'),
  ('bob', '/', '2026-01-05 09:12:00'),
  ('ann', '/basket', '2026-01-05 09:35:00'),
  -- Ann returns after more than half an hour: another session.
  ('ann', '/', '2026-01-05 10:30:00'),
  -- Time passes: the sessions before have ended. This one is still open.
  ('cleo', '/', '2026-01-05 12:00:00');
