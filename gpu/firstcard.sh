#!/usr/bin/env bash
# The first minutes on a card: what the GPU engine does there, step by step, in order of value.
#
#   gpu/firstcard.sh prepare             here: makes .card, which must travel to a machine
#                                        without a compiler
#   gpu/firstcard.sh [SECONDS] [STEP..]  there: runs the steps, or those named, until SECONDS
#                                        (530) are over
#
# A step has a limit of its own. One that fails, hangs or misses a tool never stops the next. After
# each one all logs are packed again into $OUT/logs.tar.gz and the table into $OUT/table.txt, so
# what a killed command leaves is whole. The table is printed last. No setting of the card is
# touched.
#
# .card ($CARD) holds ossrun.pack.xz, the stripped program without the files that the tree has
# anyway, and synthetic.gz (models/testdata/synthetic), which writes a checkpoint of random weights.
# What a card's table shows stands in docs/performance.md.
#
# FC_TINY=1 rehearses it without a card: tiny shapes; limits of FC_LIMIT seconds, but of minutes for
# the steps of FC_END; OSSRUN_LIBCUDA names a driver library.
set -u
ROOT=$(cd "$(dirname "$0")/.." && pwd)
CARD=${CARD:-$ROOT/.card} OUT=${OUT:-/tmp/firstcard-out} TINY=${FC_TINY:-}

# Files of the tree that the program embeds byte for byte are cut out of it: 12 MB in place of 62.
pack_program() {
  python3 - "$@" <<'PYTHON'
import json, lzma, os, subprocess, sys

what, a, root, b = sys.argv[1:]
if what == "pack":
    data, holes = bytearray(open(a, "rb").read()), []
    list = subprocess.run(["git", "-C", root, "ls-files", "-z", "assets", "runtime", "gpu"],
                          capture_output=True)
    for f in list.stdout.decode().split("\0"):
        path = os.path.join(root, f)
        if not f or not os.path.isfile(path) or os.path.getsize(path) < 1 << 16: continue
        own = open(path, "rb").read()
        if (at := data.find(own)) < 0: continue
        holes.append([at, f])
        data[at:at + len(own)] = bytes(len(own))
    head = json.dumps(holes).encode()
    whole = len(head).to_bytes(8, "little") + head + bytes(data)
    open(b, "wb").write(lzma.compress(whole, preset=0 if os.environ.get("FC_TINY") else 6))
else:
    data = lzma.open(a).read()
    n = int.from_bytes(data[:8], "little")
    holes, data = json.loads(data[8:8 + n]), bytearray(data[8 + n:])
    for at, f in holes:
        own = open(os.path.join(root, f), "rb").read()
        data[at:at + len(own)] = own
    open(b, "wb").write(data)
    os.chmod(b, 0o755)
PYTHON
}
if [ "${1:-}" = prepare ]; then
  set -e
  cd "$ROOT" && mkdir -p "$CARD"
  go build -ldflags "-s -w" -o "$CARD/ossrun" .
  pack_program pack "$CARD/ossrun" . "$CARD/ossrun.pack.xz"
  CGO_ENABLED=0 go build -ldflags "-s -w" -o "$CARD/synthetic" ./models/testdata/synthetic
  gzip -9 -c "$CARD/synthetic" > "$CARD/synthetic.gz"
  rm "$CARD/ossrun" "$CARD/synthetic"
  ls -l "$CARD"
  exit
fi
case ${1:-} in '' | *[!0-9]*) BUDGET=530 ;; *) BUDGET=$1 && shift ;; esac
W=$(mktemp -d /tmp/firstcard.XXXX) && mkdir -p "$OUT" "$W/log"
start=$SECONDS
left() { echo $((BUDGET - (SECONDS - start))); }
export HOME=$W/home XDG_CACHE_HOME=$W/cache XDG_STATE_HOME=$W/state XDG_DATA_HOME=$W/data
export XDG_CONFIG_HOME=$W/config XDG_RUNTIME_DIR=$W/run NO_COLOR=1 PYTHONUNBUFFERED=1
export CUDA_MODULE_LOADING=${CUDA_MODULE_LOADING-EAGER}
mkdir -p "$HOME" "$XDG_RUNTIME_DIR" && chmod 700 "$XDG_RUNTIME_DIR"
O=$W/ossrun PY=$(command -v python3)
has() { command -v "$1" > /dev/null; }

pack() {
  "$PY" "$W/table.py" "$W" > "$W/table.txt" 2> "$W/log/table.err" ||
    cat "$W/log/table.err" >> "$W/table.txt"
  cp "$W/table.txt" "$OUT/table.txt"
  tar czf "$OUT/.logs" -C "$W" log table.txt 2> /dev/null && mv "$OUT/.logs" "$OUT/logs.tar.gz"
}

# step NAME LIMIT COMMAND...: in a process group of its own, ended by force at its limit. HELD: not
# even that ends it, since a driver has it.
step() {
  local name=$1 limit=$2 rc=- t=$SECONDS
  shift 2
  [ ${#WANT[@]} = 0 ] || [[ " ${WANT[*]} " == *" $name "* ]] || return 0
  [ -z "$TINY" ] || limit=$((limit < TINYLIMIT ? limit : TINYLIMIT))
  [[ " ${FC_END:-} " != *" $name "* ]] || limit=300
  [ "$(left)" -ge 8 ] || { printf '%s\tno time left\t0\n' "$name" >> "$W/log/steps.tsv"; return 0; }
  [ "$limit" -le $(($(left) - 5)) ] || limit=$(($(left) - 5))
  setsid "$@" > "$W/log/$name.out" 2> "$W/log/$name.err" < /dev/null &
  local pid=$!
  while kill -0 "$pid" 2> /dev/null && [ $((SECONDS - t)) -lt "$limit" ]; do sleep 0.2; done
  if kill -0 "$pid" 2> /dev/null; then
    kill -INT -- "-$pid" 2> /dev/null; sleep 2; kill -KILL -- "-$pid" 2> /dev/null; sleep 0.5
    rc=limit
    kill -0 "$pid" 2> /dev/null && rc=HELD
    [ $rc = HELD ] || wait "$pid" 2> /dev/null
  else
    wait "$pid"; rc=$?
  fi
  printf '%s\t%s\t%s\n' "$name" "$rc" $((SECONDS - t)) >> "$W/log/steps.tsv"
  echo "== $name: $rc, $((SECONDS - t)) s, $(left) s left"
  pack
}

# ---- the steps, functions of their own

environment() {
  set -x
  uname -a; nproc; cat /etc/os-release | head -2; ldd --version | head -1
  env | grep -iE 'cuda|nvidia|ld_library' | sort
  ls -l /dev/nvidia* /usr/local/nvidia/lib64/libcuda* 2> /dev/null
  ldconfig -p | grep -E 'libcuda\.|libcudart|libcublas\.'
  free -m; df -h /tmp /dev/shm "$ROOT"
  local q=name,driver_version,memory.total,memory.free,clocks.sm,clocks.mem,clocks.max.sm
  q=$q,clocks.max.mem,power.limit,ecc.mode.current,mig.mode.current,persistence_mode,compute_mode
  has nvidia-smi && { nvidia-smi; nvidia-smi --query-gpu=$q --format=csv; }
  has nvcc && nvcc --version | tail -2
  "$O" version
}

doctor() {
  "$O" doctor --device gpu --json > "$W/log/doctor.json"; echo "exit $?" # proves the kernels
  "$O" doctor --verbose --device gpu
  "$O" doctor --verbose --device gpu --isolate | grep -E '^(device|kernels)'
}
golden() { "$O" doctor --golden "$ROOT/testdata/model/$1" --device gpu; }

# Text on the card and on the CPU, chosen on the card: greedy, and by a seed. All of the vocabulary.
demo() {
  local n=${TINY:+2} q='How do I serve an OpenAI API?' d same=0 cpu gpu
  for t in "0" "1 --seed 7"; do
    cpu=$W/log/demo-cpu-${t%% *}.txt gpu=$W/log/demo-gpu-${t%% *}.txt
    for d in cpu gpu; do
      # shellcheck disable=SC2086
      "$O" chat --model demo --device $d --compute exact --temperature $t \
        --max-tokens "${n:-120}" "$q" > "${!d}" 2>> "$W/log/demo.err" < /dev/null
    done
    cmp -s "$cpu" "$gpu" && [ -s "$gpu" ] && same=$((same + 1)) && continue
    echo "temperature $t: texts differ"; diff "$cpu" "$gpu" | head -6
  done
  echo "$same of 2 texts are those of the CPU"; [ "$same" = 2 ]
}

shape=20b prefill=512,2048,8192 batches=1,2,4,8,9,16,32,64,128,256
contexts=4096,32768 steps=64 rounds=2
[ -z "$TINY" ] || { shape=2x64x64x4 prefill=20 batches=1 contexts=0 steps=1 rounds=1; }
# tiny TINY FULL: what a rehearsal takes in the place of what a card does.
tiny() { if [ -n "$TINY" ]; then echo "$1"; else echo "$2"; fi; }
# bench NAME SHAPE PREFILL BATCHES CONTEXTS [FLAG ...].
bench() {
  "$O" bench --synthetic "$2" --device gpu --prefill "$3" --batch "$4" --context "$5" \
    --rounds "$rounds" --steps "$steps" --plain --json "${@:6}" > "$W/log/bench-$1.json"
}
bench20() { bench 20b $shape $prefill $batches $contexts; }
bench20q8() {
  bench 20b-q8 $shape "$(tiny 20 2048)" "$(tiny 1 1,2,4,8,16,64,256)" 0 --dense q8
}
bench20f8() { # beside bench20's contexts
  bench 20b-f8 $shape "$(tiny 20 8192)" "$(tiny 1 1,64)" $contexts --kv-cache-dtype fp8
}
bench120() { [ -n "$TINY" ] || bench 120b 120b 512,2048 1,8,32 4096; }
# The kernels of before: none that a card must time to choose.
bench20old() {
  OSSRUN_KERNELS=decode_down bench 20b-old $shape "$(tiny 20 2048)" "$(tiny 1 1,8,16,64,256)" 0
}
ops() {
  "$O" bench ops --synthetic $shape --device gpu --batch "$(tiny 2 1,8,16,64,256)" \
    --prefill "$(tiny 20 2048)" --context "$(tiny 0 4096)" --rounds 1
}
selftest() { "$O" doctor --selftest --device gpu; }
# The host's cores, of which a machine with a card has many.
cores() {
  local n
  for n in 1 2 4 8 16; do
    [ "$n" = 1 ] || [ "$n" -le "$(nproc)" ] || break
    "$O" bench --synthetic $shape --layers "$(tiny 1 6)" --device cpu \
      --threads "$n" --prefill "$(tiny 20 512)" --batch "$(tiny 1 8)" --context 0 --rounds 1 \
      --steps "$(tiny 1 8)" --plain --json > "$W/log/bench-cpu-$n.json"
  done
}

# load NAME RUN ...: a server over a full-size checkpoint of random weights in memory; a RUN is
# clients:input:output:requests.
load() {
  local name=$1 model=/dev/shm/fc-20b port ok= n server
  shift
  if [ -n "$TINY" ]; then model=demo; set -- 1:8:2:1; else
    [ -e $model/config.json ] || { time "$W/synthetic" -model 20b $model; } || return 1
  fi
  "$O" serve --model "$model" --device gpu --port 0 --tools none ${SERVE_FLAGS:-} \
    > "$W/log/server$name.log" 2>&1 &
  server=$!
  for n in $(seq 1 "$(tiny 3000 300)"); do
    port=$(sed -n 's|.*http://127\.0\.0\.1:\([0-9]*\).*|\1|p' "$W/log/server$name.log" | head -1)
    [ -n "$port" ] && "$PY" -c "import urllib.request as u
u.urlopen('http://127.0.0.1:$port/health', timeout=1)" 2> /dev/null && ok=1 && break
    kill -0 $server 2> /dev/null || break
    sleep 0.1
  done
  echo "ready: ${ok:-NOT}, asked $n times"
  [ -n "$ok" ] || { tail -5 "$W/log/server$name.log"; kill -KILL $server 2> /dev/null; return 1; }
  for n in "$@"; do
    IFS=: read -r c in out prompts <<< "$n"
    timeout "$(tiny 300 60)" "$O" bench serve --port "$port" \
      --random-input-len "$in" --random-output-len "$out" --ignore-eos --max-concurrency "$c" \
      --num-prompts "$prompts" --disable-tqdm --json > "$W/log/serve$name-$c.json" ||
      echo "$c clients: exit $?"
    has nvidia-smi && nvidia-smi --format=csv,noheader \
      --query-gpu=clocks.sm,power.draw,utilization.gpu,memory.used
  done
  kill -INT $server; sleep 1; kill -KILL $server 2> /dev/null; true
}
serve() { load "" 1:1024:256:4 8:1024:256:32 16:1024:256:64 64:1024:256:192 256:1024:256:768; }
servesame() { SERVE_FLAGS=--deterministic load -same 1:1024:256:4 8:1024:256:32 64:1024:256:128; }
serveisolated() { SERVE_FLAGS=--isolate load -isolated 1:1024:256:4 64:1024:256:128; }

# Hardware counters of each kernel of one layer's worth of steps, of experts' kernels of few tokens,
# with what their warps wait for, and of choosing a token.
counters() {
  has ncu || { echo "no ncu"; return 3; }
  local m=gpu__time_duration.sum,dram__bytes_read.sum,lts__t_bytes.sum,launch__grid_size
  m=$m,dram__throughput.avg.pct_of_peak_sustained_elapsed,launch__registers_per_thread
  m=$m,sm__inst_issued.avg.pct_of_peak_sustained_active
  m=$m,sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active
  m=$m,sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active
  m=$m,sm__warps_active.avg.pct_of_peak_sustained_active,l1tex__data_bank_conflicts_pipe_lsu.sum
  local -a ncu=(ncu --clock-control none --csv --page raw --metrics "$m")
  timeout 30 "${ncu[@]}" --log-file "$W/log/ncu-steps.csv" -s 20 -c 24 \
    -k 'regex:^(decode|prefill|route|norm|rope|write_kv|combine|round)' \
    "$O" bench --synthetic 20b --layers 2 --device gpu --prefill 2048 --batch 1 --context 0 \
    --rounds 1 --steps 1 --plain
  local stall=smsp__average_warps_issue_stalled n
  for n in long_scoreboard short_scoreboard barrier wait math_pipe_throttle not_selected; do
    m=$m,${stall}_${n}_per_issue_active.ratio
  done
  for n in 8 64; do
    timeout 20 ncu --clock-control none --csv --page raw --metrics "$m" -s 4 -c 4 \
      --log-file "$W/log/ncu-few-$n.csv" -k 'regex:^stream' "$O" bench --synthetic 20b \
      --layers 2 --device gpu --prefill $n --batch $n --context 0 --rounds 1 --steps 2 --plain
  done
  timeout 40 "${ncu[@]}" --log-file "$W/log/ncu-sample.csv" -c 16 \
    -k 'regex:^(logit_stats|sample.*|top_logits|edit_logits)$' \
    "$O" chat --model demo --device gpu --temperature 1 --max-tokens 4 "Hello" < /dev/null
}

sanitize() {
  has compute-sanitizer || { echo "no compute-sanitizer"; return 3; }
  local tool
  for tool in memcheck synccheck racecheck initcheck; do
    echo "-- $tool"
    timeout 25 compute-sanitizer --tool $tool --print-limit 12 --target-processes all \
      "$O" chat --model demo --device gpu --temperature 1 --max-tokens 2 \
      "How do I serve an OpenAI API?" < /dev/null 2>&1 | tail -25
  done
}
sanitizelong() {
  has compute-sanitizer || return 3
  timeout 80 compute-sanitizer --tool memcheck --print-limit 12 \
    "$O" doctor --golden "$ROOT/testdata/model/T2" --device gpu 2>&1 | tail -40
}

roofs() { "$PY" "$W/roofs.py"; }

# ---- what the steps read

cat > "$W/roofs.py" <<'E'
# What this card reaches: a copy, a read, a large product; and the decode step's own matrices by
# cuBLAS, in a graph.
import json, torch
say = lambda **k: print(json.dumps(k), flush=True)
d = 'cuda'
def best(f, n=10):
    f(); torch.cuda.synchronize(); t = []
    for _ in range(n):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        a.record(); f(); b.record(); torch.cuda.synchronize(); t.append(a.elapsed_time(b) * 1e-3)
    return sorted(t)[len(t) // 2]
x = torch.randint(0, 1 << 30, (1 << 30,), dtype=torch.int32, device=d); y = torch.empty_like(x)
say(roof='copy', gb_s=round(8 * x.numel() / best(lambda: y.copy_(x)) / 1e9))
f = x.view(torch.bfloat16)[: 1 << 30].normal_()
read = best(lambda: f.sum(dtype=torch.float32))
say(roof='read (sum of bf16)', gb_s=round(2 * f.numel() / read / 1e9))
del x, y, f
a, b = (torch.randn(8192, 8192, device=d, dtype=torch.bfloat16) for _ in range(2))
say(roof='bf16 8192^3', tflop_s=round(2 * 8192**3 / best(lambda: a @ b) / 1e12))
del a, b
for name, n, k, copies in (('qkv', 5120, 2880, 24), ('o', 2880, 4096, 24),
                           ('unembed', 201088, 2880, 2)):
    w = [torch.randn(n, k, device=d, dtype=torch.bfloat16) for _ in range(copies)]
    for rows in (1, 4, 16, 64):
        v = torch.randn(rows, k, device=d, dtype=torch.bfloat16)
        for m in w: torch.nn.functional.linear(v, m)
        torch.cuda.synchronize(); g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            for m in w: r = torch.nn.functional.linear(v, m)
        t = best(g.replay) / copies
        say(roof=f'cuBLAS {name}, {rows} rows', us=round(t * 1e6, 2),
            gb_s=round(2 * n * k / t / 1e9))
    del w
E

cat > "$W/table.py" <<'E'
import glob, json, os, re, sys
W = sys.argv[1]; L = W + '/log/'
read = lambda f: open(L + f, errors='replace').read() if os.path.exists(L + f) else ''
def load(f):
    try: return json.loads(read(f))
    except Exception: return None
print('step            result   s')
for line in read('steps.tsv').splitlines(): print('%-15s %-8s %s' % tuple(line.split('\t')))
for name in ('golden1', 'golden2'):
    t = read(name + '.out')
    verdict = (re.findall(r'golden: \w+', t) or ['no verdict'])[-1]
    if t: print(f"{name}: {len(re.findall('MISS', t))} misses; {verdict}")
for l in read('demo.out').splitlines(): print('demo: ' + l[:110])
t = read('doctor.out')
for l in re.findall(r'^(?:device|kernels|gpus) .*', t, re.M): print(l[:150])
t = read('selftest.out')
told = r'^memory: |bf16|FAILED|selftest: |8-bit weights'
print('\n'.join(l for l in t.splitlines() if re.search(told, l))[:3000])
speeds = [l for l in t.splitlines() if re.match(r' +\d+ +\d+ +\d+ ', l)]
if speeds:
    print('sequences rows context tokens/s GB/s of-memory TFLOP/s (doctor, the mode of serve)')
    print('\n'.join(speeds))
for f in sorted(glob.glob(L + 'bench-*.json')):
    r = load(os.path.basename(f))
    if not r: print(os.path.basename(f) + ': nothing'); continue
    print(f"{os.path.basename(f)}: {r['model']}, {r['layers']} layers, {r['compute']}, "
          f"kv {r['kv']}, dense {r['dense']}, copy {r['read_gb_s']:.0f} GB/s, "
          f"load {r['load_s']:.1f} s")
    for x in (r.get('prefill') or []) + (r.get('decode') or []):
        print('  %-18s %10.1f tok/s %8.0f GB/s %5.0f %% of copy' %
              (x['test'], x['tok_s'], x['gb_s'], 100 * x['of_read']))
clients = lambda f: int(re.findall(r'(\d+)\.json', f)[0])
for f in sorted(glob.glob(L + 'serve*-*.json'), key=clients):
    r = load(os.path.basename(f))
    if r:
        print('%s: %.0f out tok/s, %.0f total, TTFT %.0f ms, TPOT %.2f ms, %d failed' %
              (os.path.basename(f)[:-5], r['output_throughput'], r['total_token_throughput'],
               r['median_ttft_ms'], r['median_tpot_ms'], r['failed']))
for l in read('roofs.out').splitlines():
    if l.startswith('{'): print('roofs: ' + ', '.join(f'{k} {v}' for k, v in json.loads(l).items()))
found = r'(?:-- \w+|========= .*(?:ERROR SUMMARY|Invalid|hazard|Race).*)'
for l in re.findall(found, read('sanitize.out') + read('sanitizelong.out')): print(l[:120])
import csv
def counters(f):
    rows, head = {}, None
    for r in csv.reader(l for l in read(f).splitlines() if l.startswith('"')):
        if 'Kernel Name' in r: head = r; continue
        if not head or len(r) != len(head) or not r[0].isdigit(): continue
        d = dict(zip(head, r)); k = d['Kernel Name'].split('(')[0]
        g = lambda n: float((d.get(n) or '0').replace(',', '') or 0)
        active = '.avg.pct_of_peak_sustained_active'
        rows.setdefault(k, []).append((
            g('gpu__time_duration.sum'), g('dram__bytes_read.sum'),
            g('dram__throughput.avg.pct_of_peak_sustained_elapsed'), g('sm__inst_issued' + active),
            g('sm__inst_executed_pipe_alu' + active), g('sm__warps_active' + active)))
    for k, v in rows.items():
        m = [sorted(c)[len(c) // 2] for c in zip(*v)]
        print('ncu %-24s x%-3d time %9.2f dram read %12.0f, dram %3.0f %% issue %3.0f %% '
              'alu %3.0f %% warps %3.0f %%' % (k, len(v), *m))
for f in sorted(glob.glob(L + 'ncu-*.csv')): counters(os.path.basename(f))
for f in sorted(glob.glob(L + '*.err')):
    t = [l for l in read(os.path.basename(f)).splitlines()
         if re.search(r'ossrun: |cu[A-Z]\w+: |CUDA_ERROR|panic|fatal|Error', l)]
    for l in t[:3]: print(os.path.basename(f) + ': ' + l[:160])
E

# ---- run
WANT=("$@") TINYLIMIT=${FC_LIMIT:-100000}
pack_program unpack "$CARD/ossrun.pack.xz" "$ROOT" "$O" || exit 1
[ ! -e "$CARD/synthetic.gz" ] || gzip -dc "$CARD/synthetic.gz" > "$W/synthetic"
[ ! -e "$W/synthetic" ] || chmod +x "$W/synthetic"
# Without a client the driver puts the card to sleep, and each program would wait a second or two
# for it to start again.
"$PY" -c 'import ctypes, time
ctypes.CDLL("libcuda.so.1").cuInit(0)
time.sleep(900)' > /dev/null 2>&1 &
holder=$!
trap 'kill $holder 2> /dev/null' EXIT
export -f has environment doctor golden demo tiny bench bench20 bench20old bench20q8 bench20f8
export -f bench120 ops selftest load serve servesame serveisolated counters sanitize sanitizelong
export -f roofs cores
export W O PY ROOT CARD OUT TINY TINYLIMIT shape prefill batches contexts steps rounds

# What they took on an H200, without the machine's own start (30 s): doctor 3 s, demo 3, bench20 7,
# bench20old 4, ops 3, bench120 8, counters 31.
#    name          limit
step environment   15 bash -c environment
step doctor        60 bash -c doctor             # opens the card, proves the kernels, times them
step demo          30 bash -c demo               # sampling on the card: nothing else checks it
step bench20       60 bash -c bench20            # speed, in serve's mode
step bench20old    40 bash -c bench20old         # the same by the kernels of before
step ops           30 bash -c ops
step bench120      40 bash -c bench120
step bench20q8     40 bash -c bench20q8
step bench20f8     30 bash -c bench20f8
step golden2       40 bash -c 'golden T2'        # numbers of whole models
step serve        120 bash -c serve
step counters      90 bash -c counters
step cores        100 bash -c cores              # the host's, of which such machines have many
step golden1       60 bash -c 'golden T1'
step roofs         40 bash -c roofs
step sanitize     100 bash -c sanitize
step servesame     60 bash -c servesame
step serveisolated 60 bash -c serveisolated
step sanitizelong  90 bash -c sanitizelong
step selftest     200 bash -c selftest
rm -rf /dev/shm/fc-20b
pack
cat "$W/table.txt"
