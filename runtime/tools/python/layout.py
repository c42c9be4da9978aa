import json, os, sys, sysconfig
real, p = os.path.realpath, sysconfig.get_paths()
mapped = set()
if os.path.exists("/proc/self/maps"):
    mapped = {line.split(None, 5)[5].strip() for line in open("/proc/self/maps") if "/" in line}
print(json.dumps({
    "program": real(getattr(sys, "_base_executable", "") or sys.executable),
    "prefixes": sorted({real(sys.base_prefix), real(sys.base_exec_prefix)}),
    "library": sorted({real(p["stdlib"]), real(p["platstdlib"])}),
    "sites": sys.prefix != sys.base_prefix and sorted({real(p["purelib"]), real(p["platlib"])}) or [],
    "mapped": sorted(path for path in mapped if os.path.isfile(path))}))
