// warp.h's sums and maxima over the lanes of a warp, which includes this for the host.
#ifndef OSSRUN_GPU_EMULATOR_LANES_H_
#define OSSRUN_GPU_EMULATOR_LANES_H_

// The emulation does the same for all lanes at once: a T of each.
template <class T>
struct Lanes {
  T v[WARP];
};
template <class T>
inline Lanes<T> shuffle_xor(const Lanes<T>& a, int d) {
  Lanes<T> r;
  for (int i = 0; i < WARP; i++) r.v[i] = a.v[i ^ d];
  return r;
}
template <class T, T combine(T, T)>
inline T over_lanes(T v) {
  uint64_t own = 0;
  memcpy(&own, &v, sizeof v);
  own = simt::together(simt::kShuffle, own, [](uint64_t* all) {
    Lanes<T> a;
    for (int i = 0; i < WARP; i++) memcpy(&a.v[i], &all[i], sizeof(T));
    a = butterfly(a, [](Lanes<T> x, const Lanes<T>& y) {
      for (int i = 0; i < WARP; i++) x.v[i] = combine(x.v[i], y.v[i]);
      return x;
    });
    for (int i = 0; i < WARP; i++) memcpy(&all[i], &a.v[i], sizeof(T));
  });
  memcpy(&v, &own, sizeof v);
  return v;
}

#endif  // OSSRUN_GPU_EMULATOR_LANES_H_
