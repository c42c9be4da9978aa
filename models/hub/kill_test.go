package hub_test

// kill -9 in the middle of pulls. The pull runs in a process of its own (this test binary again)
// against a server that stays here and counts bytes.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/ossrun/ossrun/models/hub"
	"github.com/ossrun/ossrun/runtime/process/hosttest"
)

// child is the role of the test binary if its first argument is childName.
const childName = "pull-in-a-child"

// failed is the child's exit code for a failed pull: neither success nor a killed process's code.
const failed = 42

// sentAhead bounds the bytes in the sockets of a connection, on either side. They are lost when a
// process is killed, and without a bound they are megabytes, more on a busy machine.
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
	server := hubWith(t, r)
	var total int64
	for _, name := range fetched {
		total += r.Files[name].Size
		r.Files[name].ETag() // hashed once
	}
	o := hub.Options{Root: t.TempDir(), Repo: tune}
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], childName, server.Hub.URL, o.Root)
		cmd.Stderr = os.Stderr
		hosttest.Check(t, cmd.Start())
		return cmd
	}
	server.SendAhead(sentAhead)
	for i := range kills {
		reached := server.HoldAt(total * int64(i+1) / int64(kills+1))
		cmd := start()
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-reached:
		case err := <-ended:
			t.Fatalf("the pull ended by itself after %d bytes: %v", server.Sent(""), err)
		}
		hosttest.Check(t, cmd.Process.Kill())
		<-ended
	}
	server.HoldAt(-1)
	hosttest.Check(t, start().Wait())
	whole(t, o, r)
	// A kill may cost a chunk: for each connection the unwritten piece, and the bytes in its
	// sockets.
	extra := server.Sent("") - total
	t.Logf("%d kills: %d bytes were sent for %d, %d too many (%.2f chunks a kill)", kills,
		server.Sent(""), total, extra,
		float64(extra)/float64(kills)/(16<<20))
	if extra > int64(kills)*16<<20 {
		t.Errorf("%d kills: %d bytes were sent for %d, %d too many, a chunk a kill is allowed",
			kills, server.Sent(""), total, extra)
	}
}
