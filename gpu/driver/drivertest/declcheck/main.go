// Command declcheck checks the table of package driver against the vendors' own headers: it writes
// C++ that says what the table says and lets g++ compile it against cuda.h and hip_runtime_api.h.
// .ci/run fetches the headers (PyPI's nvidia-cuda-runtime, Debian's libamdhip64-dev) and runs it.
//
//	go run ./gpu/driver/drivertest/declcheck -cuda DIR/nvidia/cu13/include -hip DIR/usr/include
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/ossrun/ossrun/gpu/driver"
)

func main() {
	cuda := flag.String("cuda", "", "the folder of cuda.h")
	hip := flag.String("hip", "", "the folder of hip/hip_runtime_api.h")
	flag.Parse()
	if *cuda == "" || *hip == "" {
		flag.Usage()
		os.Exit(2)
	}
	for api, folder := range map[driver.API]string{driver.CUDA: *cuda, driver.HIP: *hip} {
		source, checks := Source(api)
		c := exec.Command("g++", "-std=c++17", "-fsyntax-only", "-I", folder, "-x", "c++", "-")
		c.Stdin, c.Stderr = strings.NewReader(source), os.Stderr
		if err := c.Run(); err != nil {
			fmt.Fprintf(os.Stderr,
				"declcheck: %s: %v: a line above names what the header says otherwise\n", api, err)
			os.Exit(1)
		}
		fmt.Printf("declcheck: %s: %d declarations and numbers as in %s\n", api, checks, folder)
	}
}

// Source is a translation unit that compiles where the headers of an API agree with the table, and
// how many things it checks.
func Source(api driver.API) (source string, checks int) {
	var b strings.Builder
	b.WriteString(preamble[api])
	b.WriteString(letters)
	for _, d := range driver.Declarations {
		name, arguments := d.CUDA, d.CUDAArguments
		if api == driver.HIP {
			if name = d.HIP; d.HIPArguments != "" {
				arguments = d.HIPArguments
			}
		}
		if name != "" {
			fmt.Fprintf(&b, "static_assert(same(static_cast<decltype(&%s)>(nullptr), %q), %q);\n",
				name, arguments, name)
			checks++
		}
	}
	for _, c := range driver.Constants {
		name, value := c.CUDA, c.OfCUDA
		if api == driver.HIP {
			name, value = c.HIP, c.OfHIP
		}
		if name != "" {
			fmt.Fprintf(&b, "static_assert(static_cast<int>(%s) == %d, %q);\n", name, value, name)
			checks++
		}
	}
	return b.String(), checks
}

var preamble = map[driver.API]string{
	driver.CUDA: "#include <cuda.h>\n",
	driver.HIP: "#define __HIP_PLATFORM_AMD__ 1\n#define __HIP_DISABLE_CPP_FUNCTIONS__ " +
		"1\n#include <hip/hip_runtime_api.h>\n",
}

// letters is the alphabet of Declaration in C++.
const letters = `#include <cstddef>
#include <type_traits>
template <class T> constexpr char letter() {
  if constexpr (std::is_pointer_v<T>) {
    using To = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_void_v<To> || std::is_class_v<To> || std::is_same_v<To, char>) return 'w';
    else return sizeof(To) == 4 ? 'I' : sizeof(To) == 8 ? 'W' : '?';
  } else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>, "only integers and pointers are passed");
    return sizeof(T) == 1 ? 'b' : sizeof(T) == 4 ? 'i' : sizeof(T) == 8 ? 'w' : '?';
  }
}
template <class R, class... A> constexpr bool same(R (*)(A...), const char* want) {
  const char have[] = {letter<A>()..., 0};
  std::size_t i = 0;
  for (; have[i] != 0; i++) {
    if (have[i] != want[i]) return false;
  }
  return want[i] == 0;
}
`
