package browser

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// publicAddress is this machine's inside the test's own network.
const publicAddress = "93.184.216.34"

// A machine on the Internet has a public address, by which its own services are not reached either.
// In a network of its own the test is such a machine.
func TestOwnPublicAddress(t *testing.T) {
	if os.Getenv("OSSRUN_TEST_INSIDE") == "" {
		unshare := hosttest.Program(t, "unshare")
		hosttest.Program(t, "ip")
		if text, err := exec.Command(unshare, "-rn", "true").CombinedOutput(); err != nil {
			t.Skipf("no network of its own: %v %s", err, text)
		}
		inside := exec.Command(unshare, "-rn", "sh", "-c", "ip link set lo up && ip addr add "+
			publicAddress+"/32 dev lo && exec "+os.Args[0]+" -test.run TestOwnPublicAddress")
		inside.Env = append(os.Environ(), "OSSRUN_TEST_INSIDE=1")
		if text, err := inside.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, text)
		}
		return
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, "for this machine only")
	})}
	go s.Serve(l)
	defer s.Close()
	page := fmt.Sprintf(`{"id":"http://%s:%d/"}`, publicAddress, l.Addr().(*net.TCPAddr).Port)
	refuses(t, New(Options{}), "open", page, publicAddress+" is an address of this machine")
	allowed := Options{Allow: []netip.Prefix{netip.MustParsePrefix(publicAddress + "/32")}}
	shows(t, New(allowed), "open", page, "for this machine only")
}
