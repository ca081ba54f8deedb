#!/usr/bin/env bash
# Makes the folder tools/ anew: output of the load generators that are installed, against service.js on this machine.
#
#   PATH=folders-with-more-tools:$PATH ./make.sh
#
# A tool that is not there is skipped and its files stay as they are. Each run takes a few seconds, and all of them some
# three minutes. It must not load anything but the service that it starts, and ends that by its id.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
mkdir -p tools

PORT=${PORT:-39517}
PORT=$PORT node service.js >service.log &
service=$!
trap 'kill "$service"; sort -u service.log; rm -f service.log' EXIT
until grep -q ready service.log; do sleep 0.1; done
url=http://127.0.0.1:$PORT

# keep NAME.EXT COMMAND...: what a command prints, on both of its outputs as one sees it in a terminal; as JSON what it writes for programs.
keep() {
    local file=$1
    shift
    echo "$file: $*" >&2
    case $file in
    *.json) "$@" >"tools/$file" 2>/dev/null || true ;;
    *) "$@" >"tools/$file" 2>&1 || true ;;
    esac
}

has() { command -v "$1" >/dev/null || { echo "$1 is not here" >&2; return 1; }; }
package() { dpkg-query -W -f '${Version}' "$1" | sed 's/^[0-9]*://; s/[-+~].*//'; }

if has wrk; then
    version=$(package wrk)
    keep "wrk-$version-plain.txt" wrk -t2 -c10 -d2s "$url/small"
    keep "wrk-$version-latency-plain.txt" wrk -t1 -c4 -d2s --latency "$url/small"
    keep "wrk-$version-timeouts.txt" wrk -t1 -c4 -d6s "$url/slow"
    keep "wrk-$version-errors.txt" wrk -t1 -c4 -d1s "$url/error"
    keep "wrk-$version-reset.txt" wrk -t1 -c4 -d1s "$url/reset"
    wrk -t1 -c1 -d1s "$url/headers" >/dev/null
fi
if has ab; then
    version=$(ab -V | sed -n 's/.*Version \([0-9.]*\).*/\1/p')
    keep "ab-$version-plain.txt" ab -c 10 -n 2000 "$url/small"
    keep "ab-$version-keep-plain.txt" ab -k -c 10 -t 1 -n 100000 "$url/small"
    keep "ab-$version-errors.txt" ab -c 4 -n 200 "$url/error"
    keep "ab-$version-reset.txt" ab -c 4 -n 200 "$url/reset"
    ab -n 1 "$url/headers" >/dev/null
fi
if has h2load; then
    version=$(h2load --version | sed 's/.*nghttp2\///')
    keep "h2load-$version-plain.txt" h2load --h1 -c 10 -t 2 -n 2000 "$url/small"
    keep "h2load-$version-duration-plain.txt" h2load --h1 -c 10 -D 2 "$url/small"
    keep "h2load-$version-errors.txt" h2load --h1 -c 4 -n 200 "$url/error"
    h2load --h1 -n 1 "$url/headers" >/dev/null
fi
if has oha; then
    version=$(oha --version | sed 's/oha //')
    keep "oha-$version-plain.txt" oha --no-tui -c 10 -n 2000 "$url/small"
    keep "oha-$version-plain.json" oha --no-tui -c 10 -n 2000 --output-format json "$url/small"
    keep "oha-$version-timeouts.txt" oha --no-tui -c 4 -n 8 -t 1s "$url/slow"
    keep "oha-$version-errors.txt" oha --no-tui -c 4 -n 200 "$url/error"
    keep "oha-$version-rate.json" oha --no-tui -c 4 -z 2s -q 200 --latency-correction --output-format json "$url/small"
    oha --no-tui -c 1 -n 1 "$url/headers" >/dev/null
fi
if has hey; then
    version=${HEY_VERSION:-$(package hey)}
    keep "hey-$version-plain.txt" hey -c 10 -n 2000 "$url/small"
    keep "hey-$version-timeouts.txt" hey -c 4 -n 8 -t 1 "$url/slow"
    keep "hey-$version-errors.txt" hey -c 4 -n 200 "$url/error"
    hey -c 1 -n 1 "$url/headers" >/dev/null
fi
# Several versions: folders with a node_modules each, such as $AUTOCANNONS=/tmp/a8:/tmp/a4
for folder in $(tr : ' ' <<<"${AUTOCANNONS:-}"); do
    program=$folder/node_modules/autocannon
    version=$(node -p "require('$program/package.json').version")
    keep "autocannon-$version-plain.txt" node "$program/autocannon.js" -c 10 -d 2 "$url/small"
    keep "autocannon-$version-plain.json" node "$program/autocannon.js" -j -c 10 -d 2 "$url/small"
    keep "autocannon-$version-errors.txt" node "$program/autocannon.js" -c 4 -d 1 "$url/error"
    keep "autocannon-$version-timeouts.json" node "$program/autocannon.js" -j -c 4 -d 4 -t 1 "$url/slow"
    node "$program/autocannon.js" -c 1 -a 1 "$url/headers" 2>/dev/null
done
if has vegeta; then
    version=${VEGETA_VERSION:-$(vegeta -version | sed -n 's/^Version: v*//p')}
    results=$(mktemp)
    echo "GET $url/small" | vegeta attack -rate=200 -duration=2s >"$results"
    keep "vegeta-$version-plain.txt" vegeta report "$results"
    keep "vegeta-$version-plain.json" vegeta report -type=json "$results"
    echo "GET $url/error" | vegeta attack -rate=100 -duration=1s >"$results"
    keep "vegeta-$version-errors.txt" vegeta report "$results"
    echo "GET $url/slow" | vegeta attack -rate=10 -duration=1s -timeout=1s >"$results"
    keep "vegeta-$version-timeouts.txt" vegeta report "$results"
    echo "GET $url/headers" | vegeta attack -rate=1 -duration=1s >"$results"
    rm "$results"
fi
# Several versions: programs, such as $K6S=/tmp/k6-0.49/k6:/tmp/k6-1/k6
for program in $(tr : ' ' <<<"${K6S:-}"); do
    version=$("$program" version | sed -n 's/^k6 v\([0-9.]*\).*/\1/p')
    script=$(mktemp --suffix=.js)
    printf 'import http from "k6/http";\nexport default () => { http.get("%s" + (__ENV.AT || "/small")); };\n' "$url" >"$script"
    keep "k6-$version-plain.txt" "$program" run --no-usage-report --vus 5 --duration 2s \
        --summary-export "tools/k6-$version-plain.json" "$script"
    keep "k6-$version-errors.txt" "$program" run --no-usage-report --env AT=/error --vus 2 --duration 1s "$script"
    "$program" run --no-usage-report --quiet --env AT=/headers --iterations 1 "$script" >/dev/null
    # The data of handleSummary, at a rate.
    cat >"$script" <<SCRIPT
import http from "k6/http";
const steady = { executor: "constant-arrival-rate", rate: 200, duration: "2s", preAllocatedVUs: 20 };
export const options = { scenarios: { steady }, summaryTrendStats: ["avg", "min", "med", "max", "p(90)", "p(99)"] };
export default () => { http.get("$url/small"); };
export const handleSummary = (data) => ({ "tools/k6-$version-rate.json": JSON.stringify(data, null, 2) });
SCRIPT
    echo "k6-$version-rate.json: $program run" >&2
    "$program" run --no-usage-report --quiet "$script" >/dev/null
    rm "$script"
done
# What depends on this machine and says nothing.
sed -i "s|/tmp/tmp\.[A-Za-z0-9]*\.js|script.js|g" tools/*
