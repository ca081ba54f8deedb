#!/bin/sh
# A PostgreSQL on PORT with a table of 20,000 rows, in a folder of its own. It refuses to be root.
set -e
data="$ORDINARY_TMP/postgres-$PORT"
programs=$(dirname "$(readlink -f "$(command -v postgres)")")
as() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; else "$@"; fi; }
mkdir -p "$data"
chmod 711 "$ORDINARY_TMP"
[ "$(id -u)" != 0 ] || chown postgres "$data"
as "$programs/initdb" --pgdata="$data" --auth=trust --username=postgres --no-sync >&2
echo 'create table items as select id, id as key, md5(id::text) as value from generate_series(1, 20000) id; create index on items (id);' |
  tr '\n' ' ' | as "$programs/postgres" --single -D "$data" -F postgres >&2
[ "$(id -u)" != 0 ] || set -- setpriv --reuid=postgres --regid=postgres --clear-groups
exec "$@" "$programs/postgres" -D "$data" -F -h 127.0.0.1 -p "$PORT" -k ''
