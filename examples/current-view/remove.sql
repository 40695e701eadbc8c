DROP CHANGELOG current_view.public.customers;
DROP DATABASE current_view;
-- The table with its rows.
DROP ENTITY customers IN STORE shop_db;
DROP STORE shop_db;
