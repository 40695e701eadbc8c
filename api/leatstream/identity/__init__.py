"""Sign-in with tokens of other identity providers (OpenID Connect)."""
