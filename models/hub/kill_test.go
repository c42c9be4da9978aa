package hub_test

// kill -9 in the middle of pulls. The pull runs in a process of its own (this test binary again)
// against a server that stays here and counts bytes.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/models/hub/hubtest"
)

// child is what the test binary is told to be when its first argument is childName.
const childName = "pull-in-a-child"

// failed is the child's exit code for a pull that failed by itself: neither success nor what a
// system gives a process that was killed.
const failed = 42

// sentAhead bounds what lies in the sockets of a connection, on either side. Nobody has it when a
// process is killed, and without a bound it is megabytes, the more the busier the machine is.
const sentAhead = 64 << 10

// pullInChild is the child: arguments endpoint, cache.
func pullInChild(args []string) int {
	client := hub.New(args[0])
	client.ReceiveAhead(sentAhead)
	if _, err := client.Pull(context.Background(),
		hub.Options{Root: args[1], Repo: tune}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return failed
	}
	return 0
}

func TestKill(t *testing.T) {
	t.Parallel()
	kills, size := 8, int64(44<<20) // with the second shard 66 MB
	if os.Getenv("OSSRUN_LONG") != "" {
		kills, size = 50, 4<<30/3 // 2 GB
	}
	r := sample(size)
	server := hubtest.New()
	defer server.Close()
	server.Add(tune.ID(), r)
	var total int64
	for _, name := range fetched {
		total += r.Files[name].Size
		r.Files[name].ETag() // hashed before the clock starts
	}
	o := hub.Options{Root: t.TempDir(), Repo: tune}
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], childName, server.Hub.URL, o.Root)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	targets := make([]int64, kills)
	for i := range targets {
		targets[i] = rand.Int64N(total)
	}
	slices.Sort(targets)
	server.SendAhead(sentAhead)
	// four seconds for all of it, so that a kill comes soon after its target
	server.Throttle(total / 8 / 4)
	killed := 0
	for _, target := range targets {
		cmd := start()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for server.Sent("") < target && len(ended) == 0 {
			time.Sleep(2 * time.Millisecond)
		}
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		err := <-ended
		switch code := cmd.ProcessState.ExitCode(); {
		case code == failed || code == 0 && server.Sent("") < total:
			t.Fatalf("the pull ended by itself after %d bytes: %v", server.Sent(""), err)
		case code != 0: // else its last bytes came before the kill did
			killed++
		}
	}
	t.Logf("%d bytes were sent until the last of %d kills", server.Sent(""), killed)
	if killed < kills/2 {
		t.Errorf("%d of %d pulls were killed", killed, kills)
	}
	server.Throttle(0)
	if err := start().Wait(); err != nil {
		t.Fatal(err)
	}
	whole(t, o, r)
	// What a kill may cost is a chunk: of each connection the piece that was not written yet, and
	// what lay in its sockets.
	extra := server.Sent("") - total
	t.Logf("%d kills: %d bytes were sent for %d, %d too many (%.2f chunks a kill)", kills,
		server.Sent(""), total, extra,
		float64(extra)/float64(kills)/(16<<20))
	if extra > int64(kills)*16<<20 {
		t.Errorf("%d kills: %d bytes were sent for %d, %d too many, a chunk a kill is allowed",
			kills, server.Sent(""), total, extra)
	}
}
