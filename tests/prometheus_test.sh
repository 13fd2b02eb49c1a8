#!/bin/bash
# Other programs read the metrics: prometheus_client's parsers, and a Prometheus that scrapes a run and computes every
# query of the Grafana dashboard. A node is killed meanwhile. A second target serves the figures of GPUs, in a text that
# a unit test has written.
#
# PROMETHEUS and PYTHON name the programs if they are not in PATH.
. "$(dirname "$0")/lib.sh"
prometheus=${PROMETHEUS:-prometheus} python=${PYTHON:-python3}
need skippipe skippipe-controller skippipe-agent "$prometheus" "$python"
"$python" -c 'import prometheus_client' 2>/dev/null || skip "the Python module prometheus_client is not there"
build=${SKIPPIPE_BUILD:-$PWD/build}

run=$dir/run
"$bin/skippipe" demo --headless --format jsonl --agents 6 --stages 2,2,2 --skip 0/3 --time-scale 0 --run-dir "$run" \
	--eval-every 2 --metrics 0 >"$dir/events" 2>"$dir/demo.err" &
demo=$!
started+=($demo)
wait_for "$dir/events" 3 $demo 120
address=$(sed -n 's|.*metrics: http://\([^/]*\)/metrics.*|\1|p' "$run/log/controller.log" | tail -n 1)
[ -n "$address" ] || die "the log does not name the address of the metrics"

METRICS_TEXT=$dir/gpu.txt "$build/controller/tests/metrics_test" >"$dir/unit.out" 2>&1 || die "the unit test fails"
cat >"$dir/serve.py" <<-'PYTHON'
	import http.server, sys
	class Handler(http.server.BaseHTTPRequestHandler):
	    def do_GET(self):
	        self.send_response(200)
	        self.send_header('content-type', 'text/plain; version=0.0.4')
	        self.end_headers()
	        self.wfile.write(open(sys.argv[1], 'rb').read())
	    def log_message(self, *ignored):
	        pass
	server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
	print(server.server_port, flush=True)
	server.serve_forever()
PYTHON
"$python" "$dir/serve.py" "$dir/gpu.txt" >"$dir/serve.port" 2>"$dir/serve.err" &
started+=($!)
wait_text "$dir/serve.port" '[0-9]' $! 60

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$dir/prometheus.yml" <<-YAML
	global: { scrape_interval: 1s }
	scrape_configs:
	- job_name: skippipe
	  static_configs: [{ targets: ['$address', '127.0.0.1:$(cat "$dir/serve.port")'] }]
YAML
"$prometheus" --config.file="$dir/prometheus.yml" --storage.tsdb.path="$dir/tsdb" \
	--web.listen-address="127.0.0.1:$port" >"$dir/prometheus.err" 2>&1 &
started+=($!)

cat >"$dir/ask.py" <<-'PYTHON'
	import json, os, signal, sys, time, urllib.parse, urllib.request
	import prometheus_client.parser, prometheus_client.openmetrics.parser
	address, prometheus, killed, board = sys.argv[1:5]

	def fetch(accept):
	    request = urllib.request.Request('http://%s/metrics' % address, headers={'Accept': accept})
	    with urllib.request.urlopen(request, timeout=30) as answer:
	        return answer.headers['content-type'], answer.read().decode()

	kind, text = fetch('text/plain')
	assert kind.startswith('text/plain; version=0.0.4'), kind
	plain = list(prometheus_client.parser.text_string_to_metric_families(text))
	kind, text = fetch('application/openmetrics-text; version=1.0.0')
	assert kind.startswith('application/openmetrics-text; version=1.0.0'), kind
	opened = list(prometheus_client.openmetrics.parser.text_string_to_metric_families(text))
	def names(families):
	    return sorted({s.name for f in families for s in f.samples})
	assert names(plain) == names(opened), set(names(plain)) ^ set(names(opened))
	print('prometheus_client reads %d metrics, %d samples' %
	      (len(names(opened)), sum(len(f.samples) for f in opened)))

	def ask(query):
	    url = 'http://127.0.0.1:%s/api/v1/query?%s' % (prometheus, urllib.parse.urlencode({'query': query}))
	    with urllib.request.urlopen(url, timeout=30) as answer:
	        return json.load(answer)['data']['result']

	def wait_for(query, what):
	    end = time.time() + 90
	    while time.time() < end:
	        try:
	            result = ask(query)
	            if result:
	                return result
	        except OSError:
	            pass
	        time.sleep(0.05)
	    sys.exit('FAILED: %s: no result of %s' % (what, query))

	wait_for('skippipe_node_up{instance="%s",node="n04"} == 1' % address, 'a scrape')
	wait_for('count_over_time(skippipe_iteration{instance="%s"}[1m]) > 4' % address, 'five scrapes')
	begun = time.time()
	os.kill(int(killed), signal.SIGKILL)
	wait_for('skippipe_node_up{instance="%s",node="n04"} == 0' % address, 'a killed node')
	print('Prometheus sees the killed node after %.1f s, with a scrape each second' % (time.time() - begun))
	wait_for('skippipe_nodes{state="dead",instance="%s"} == 1' % address, 'a dead node')

	n = 0
	for panel in json.load(open(board))['panels']:
	    for target in panel.get('targets', []):
	        query = target['expr'].replace('$__rate_interval', '30s').replace('$instance', '.*')
	        wait_for(query, panel['title'])
	        n += 1
	print('all %d queries of the dashboard have data' % n)
PYTHON
"$python" "$dir/ask.py" "$address" "$port" "$(agent_pid "$run" 4)" deploy/grafana.json ||
	die "$(tail -n 5 "$dir/prometheus.err")"
