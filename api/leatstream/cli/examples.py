"""Examples that ``--help`` shows below each command."""

from __future__ import annotations

import typer

# Command, without ``leat``, to its examples, without it too.
EXAMPLES: dict[str, tuple[str, ...]] = {
    "dev": ("dev", "dev --kafka-bootstrap localhost:9092 --no-sample"),
    "serve": ("serve",),
    "token": ("token",),
    "doctor": ("doctor", "doctor --tools"),
    "env": ("env", "env --shell fish", "env -o json"),
    "demo": ("demo", "demo --keep"),
    "openapi": ("openapi",),
    "init": ("init", "init pipeline --form sql"),
    "open": ("open", "open --docs --no-browser"),
    "server": ("server",),
    "capabilities": ("capabilities",),
    "sql": (
        "sql",
        "sql 'LIST QUERIES;'",
        "sql -f pipeline.sql --dry-run",
        "sql -f pipeline.sql --atomic",
        "sql -o csv 'SELECT * FROM by_region;'",
    ),
    "print": (
        "print embedded/pageviews",
        "print embedded/pageviews --from-beginning --limit 5 -o ndjson",
        "print embedded/pageviews --since 2026-01-31T09:00:00Z --q User_6 --rate 20",
        "print embedded/pageviews --partition 0 --offset 42 --limit 1",
    ),
    "graphql": (
        "graphql '{ queries { items { name status { state } } } }'",
        "graphql --file plan.graphql --var name=enriched",
    ),
    "export": (
        "export",
        "export demo.shop store:kafka_store",
        "export --format hcl -o deployed",
        "export --format cdktf -o deployed",
    ),
    "lineage": (
        "lineage",
        "lineage demo.public.pageviews --depth 3",
        "lineage query:enriched -o json",
    ),
    "events": ("events", "events --follow --kind query", "events demo.public --tail 200 -o ndjson"),
    "driver list": ("driver list", "driver list --state idle --wide"),
    "vocabulary": ("vocabulary", "vocabulary -o json"),
    "query list": ("query list", "query list --state failed --q orders", "query list --wide"),
    "query get": ("query get enriched",),
    "query top": ("query top", "query top --once"),
    "query wait": ("query wait enriched --max-lag 1000", "query wait --max-lag 1000 --timeout 900"),
    "query logs": ("query logs enriched --tail 200", "query logs enriched --follow"),
    "query events": ("query events enriched",),
    "query progress": ("query progress enriched", "query progress enriched --since 6h"),
    "query history": ("query history enriched -o json",),
    "query restart": (
        "query restart enriched",
        "query restart enriched --from earliest",
        "query restart enriched --skip-record pageviews:3:42",
        "query restart --failed-by source-gone",
    ),
    "query replace": ("query replace enriched next.sql",),
    "query rollback": ("query rollback enriched",),
    "query stop": ("query stop enriched", "query stop enriched --savepoint before_upgrade"),
    "query start": ("query start enriched",),
    "query delete": ("query delete enriched --yes", "query delete enriched --delete-entity"),
    "application list": ("application list",),
    "application get": ("application get shop",),
    "application apply": ("application apply shop -f shop.sql",),
    "application restart": ("application restart shop", "application restart shop --only-failed"),
    "application logs": ("application logs shop --tail 200",),
    "application delete": ("application delete shop --yes",),
    "function-source apply": (
        "function-source apply scores -f scores.py",
        "function-source apply scores -f scores.py --no-restart",
    ),
    "store apply": (
        "store apply kafka_store -f kafka_store.json",
        "store apply kafka_store < kafka_store.json",
    ),
    "store test": ("store test kafka_store", "store test kafka_store -f kafka_store.json"),
    "role create": ("role create analyst", "role create lead --inherits analyst --comment 'Leads a team'"),
    "role grant": (
        "role grant analyst select relation:demo.shop.pageviews",
        "role grant analyst usage database:demo",
        "role grant analyst select relation --in-schema demo.shop",
        "role grant writer write_entity store:kafka_store --entities 'web.*'",
        "role grant lead create_query organization --with-grant-option",
    ),
    "role revoke": ("role revoke analyst select relation:demo.shop.pageviews",),
    "role add-member": ("role add-member analyst user:ann@example.com", "role add-member analyst role:lead"),
    "role remove-member": ("role remove-member analyst service_account:ci",),
    "user create": ("user create ann@example.com --role analyst",),
    "user disable": ("user disable ann@example.com",),
    "user enable": ("user enable ann@example.com",),
    "service-account create": ("service-account create ci --role reader --comment 'Plans pull requests'",),
    "service-account disable": ("service-account disable ci",),
    "service-account enable": ("service-account enable ci",),
    "api-token create": (
        "api-token create laptop",
        "api-token create ci_plan --account ci --scope read --days 30",
    ),
    "invitation create": (
        "invitation create ann@example.com --role analyst",
        "invitation create bob@example.com --role analyst --role reader --default-role reader --days 2",
    ),
    "api-token rotate": ("api-token rotate ci_plan --grace-minutes 60",),
    "secret create": (
        "secret create kafka_password < password.txt",
        "secret create kafka_password --reference secret://vault/kv/leat/kafka#password",
    ),
    "secret apply": ("secret apply kafka_password --dry-run", "secret apply kafka_password"),
    "relation sample": (
        "relation sample demo.shop.pageviews",
        "relation sample demo.shop.pageviews --from earliest --limit 5 -o ndjson",
    ),
    "schema-registry test": ("schema-registry test registry",),
    "schema-registry subjects": ("schema-registry subjects registry --q pageviews",),
    "schema-registry versions": ("schema-registry versions registry pageviews-value",),
    "schema-registry subject": ("schema-registry subject registry pageviews-value --version 2",),
    "login": ("login", "login --device", "login --invitation"),
    "logout": ("logout",),
    "whoami": ("whoami", "whoami -o json"),
    "audit": (
        "audit",
        "audit --account ci --limit 200 -o ndjson",
        "audit --outcome denied --since 6h",
        "audit -f --cursor audit.cursor -o ndjson",
    ),
    "admin bootstrap": (
        "admin bootstrap ann@example.com",
        "admin bootstrap ann --data-dir /var/lib/leatstream",
    ),
    "admin add-key": ("admin add-key",),
    "admin rotate-key": ("admin rotate-key", "admin rotate-key k5d1f0a2b --data-dir /var/lib/leatstream"),
    "admin remove-key": ("admin remove-key k0c3e9f71",),
    "catalog migrate": ("catalog migrate",),
    "terraform install": ("terraform install", "terraform install --uninstall"),
}
_NAMES = {
    "database": ("demo", None),
    "schema": ("demo.shop", "demo"),
    "store": ("kafka_store", None),
    "secret": ("kafka_password", None),
    "schema-registry": ("registry", None),
    "descriptor-source": ("shop_types", None),
    "entity": ("kafka_store/pageviews", "kafka_store"),
    "relation": ("demo.shop.pageviews", None),
    "function": ("grade", None),
    "function-source": ("scores", None),
    "savepoint": ("before_upgrade", None),
    "role": ("analyst", None),
    "user": ("ann", None),
    "service-account": ("ci", None),
    "api-token": ("ci_plan", None),
    "invitation": ("ann@example.com", None),
}
for _noun, (_name, _parent) in _NAMES.items():
    _list = f"{_noun} list {_parent}" if _parent else f"{_noun} list"
    EXAMPLES[f"{_noun} list"] = (_list, f"{_list} -o json")
    EXAMPLES[f"{_noun} get"] = (f"{_noun} get {_name}",)
    EXAMPLES[f"{_noun} delete"] = (f"{_noun} delete {_name} --yes",)


def add_examples(app: typer.Typer, path: str = "") -> None:
    """Show its examples below each command's help.

    Args:
        app: its commands, and those of the groups in it.
        path: of the group, with a blank behind it.
    """
    for command in app.registered_commands:
        name = command.name or str(getattr(command.callback, "__name__", "")).replace("_", "-")
        found = EXAMPLES.get(path + name, ())
        if found:
            # Blank lines between them: one line would be run into the next.
            shown = "\n\n".join(f"leat {one}" for one in found)
            command.epilog = f"{'Examples' if len(found) > 1 else 'Example'}:\n\n{shown}"
    for group in app.registered_groups:
        if group.typer_instance is not None:
            add_examples(group.typer_instance, f"{path}{group.name} ")
