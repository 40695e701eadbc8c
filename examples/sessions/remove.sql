DROP STREAM sessions.public.clicks;
DROP DATABASE sessions;
DROP ENTITY "sessions.clicks" IN STORE embedded;
