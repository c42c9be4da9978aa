//go:build linux

// Ready measures how long `ossrun serve` takes from the start of its process until it is ready and
// until its first token, with weights that are not in memory (cold) and that are (warm), compared
// with the rate at which the disk gives the same files without the page cache.
//
//	go run ./models/testdata/ready -ossrun ./ossrun -rounds 3 MODEL [FLAGS OF SERVE]
//
// MODEL is a folder of safetensors files or a GGUF file. The machine must do nothing else
// meanwhile. With -use 512, each warm start gets a prompt of 512 random tokens after its first
// token. This prompt needs every expert of every layer; what is resident then is reported too.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	program := flag.String("ossrun", "ossrun", "the program to start")
	rounds := flag.Int("rounds", 3, "how often each is measured")
	disk := flag.Bool("disk", true, "measure the disk too")
	cold := flag.Bool("cold", true, "measure cold starts too")
	warm := flag.Bool("warm", true, "measure warm starts too")
	use := flag.Int("use", 0, "tokens of a prompt after a warm start's first token")
	flag.Parse()
	if flag.NArg() < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := measure(*program, flag.Arg(0), flag.Args()[1:], *rounds, *disk, *cold, *warm,
		*use); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(program, model string, flags []string, rounds int, disk, cold, warm bool,
	use int) error {
	files, size, err := weights(model)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %.2f GB in %d files\n", model, float64(size)/1e9, len(files))
	for round := range rounds {
		rate := 0.0
		if disk {
			if err := drop(files); err != nil {
				return err
			}
			start := time.Now()
			if err := direct(files); err != nil {
				return err
			}
			rate = float64(size) / 1e6 / time.Since(start).Seconds()
			fmt.Printf("round %d: the disk gives %.0f MB/s, which is %.2f s\n", round+1, rate,
				time.Since(start).Seconds())
		}
		if cold {
			if err := drop(files); err != nil {
				return err
			}
			s, err := serve(program, model, flags, 0)
			if err != nil {
				return err
			}
			fmt.Printf("round %d: cold: %s; %.0f MB/s until ready", round+1, s,
				float64(size)/1e6/s.ready.Seconds())
			if rate > 0 {
				fmt.Printf(", %.2f of the disk", float64(size)/1e6/s.ready.Seconds()/rate)
			}
			fmt.Println()
		}
		if warm {
			s, err := serve(program, model, flags, use)
			if err != nil {
				return err
			}
			fmt.Printf("round %d: warm: %s\n", round+1, s)
		}
	}
	return nil
}

// weights are a model's weight files.
func weights(model string) (files []string, size int64, err error) {
	stat, err := os.Stat(model)
	if err != nil {
		return nil, 0, err
	}
	files = []string{model}
	if stat.IsDir() {
		if files, err = filepath.Glob(filepath.Join(model, "*.safetensors")); err != nil {
			return nil, 0, err
		}
	}
	slices.Sort(files)
	for _, path := range files {
		stat, err := os.Stat(path)
		if err != nil {
			return nil, 0, err
		}
		size += stat.Size()
	}
	return files, size, nil
}

// drop drops files from the page cache.
func drop(files []string) error {
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// direct reads files bypassing the page cache, eight readers of 4 MiB.
func direct(files []string) error {
	const piece, page = 4 << 20, 4096
	for _, path := range files {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECT, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		stat, err := f.Stat()
		if err != nil {
			return err
		}
		var next, bad atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				buffer := make([]byte, piece+page)
				buffer = buffer[-uintptr(unsafe.Pointer(&buffer[0]))&(page-1):][:piece]
				for at := next.Add(piece) - piece; at < stat.Size(); at = next.Add(piece) - piece {
					if n, _ := f.ReadAt(buffer, at); n == 0 {
						bad.Add(1)
					}
				}
			})
		}
		group.Wait()
		if bad.Load() > 0 {
			return fmt.Errorf("%s: %d pieces could not be read", path, bad.Load())
		}
	}
	return nil
}

// start is the measurement of one start of the server.
type start struct {
	ready, token        time.Duration // since the process began
	first               time.Duration // of it, from the request to the first token
	resident, anonymous string        // when ready
	residentAfter, peak string        // after the first token; at most
	processor           time.Duration
	// with every weight in use: resident memory, and the anonymous part of it
	used string
}

func (s start) String() string {
	text := fmt.Sprintf(
		"ready in %.2f s, first token at %.2f s (%.2f s after the request); %.1f s of processor; "+
			"resident %s (%s not of files), after the token %s, at most %s",
		s.ready.Seconds(), s.token.Seconds(), s.first.Seconds(), s.processor.Seconds(), s.resident,
		s.anonymous, s.residentAfter, s.peak)
	if s.used != "" {
		text += "; with every weight in use " + s.used
	}
	return text
}

// serve starts the server, waits for it, requests a token and stops it.
func serve(program, model string, flags []string, use int) (s start, err error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	command := exec.Command(program,
		append([]string{"serve", model, "--host", "127.0.0.1", "--port", port}, flags...)...)
	var said strings.Builder
	command.Stderr = &said
	command.Stdout = io.Discard
	begin := time.Now()
	if err := command.Start(); err != nil {
		return s, err
	}
	gone := make(chan error, 1)
	go func() { gone <- command.Wait() }()
	defer func() {
		_ = command.Process.Signal(syscall.SIGKILL)
		<-gone
	}()
	for {
		select {
		case err := <-gone:
			gone <- err
			return s, fmt.Errorf("the server ended: %w\n%s", err, said.String())
		default:
		}
		if answer, err := http.Get("http://" + address + "/health"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.ready = time.Since(begin)
	status := statusOf(command.Process.Pid)
	s.resident, s.anonymous = status["VmRSS"], status["RssAnon"]
	asked := time.Now()
	answer, err := http.Post("http://"+address+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":"Hello","max_tokens":2,"stream":true}`))
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "data:") {
		return s, fmt.Errorf("the server answers %q, %v", line, err)
	}
	s.first, s.token = time.Since(asked), time.Since(begin)
	status = statusOf(command.Process.Pid)
	s.residentAfter, s.peak = status["VmRSS"], status["VmHWM"]
	s.processor = processorOf(command.Process.Pid)
	if use == 0 {
		return s, nil
	}
	var prompt strings.Builder
	for i := range use {
		fmt.Fprintf(&prompt, ",%d", (i*7919+12345)%199000)
	}
	long, err := http.Post("http://"+address+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":[`+prompt.String()[1:]+`],"max_tokens":1}`))
	if err != nil {
		return s, err
	}
	defer long.Body.Close()
	if text, err := io.ReadAll(long.Body); err != nil || long.StatusCode != http.StatusOK {
		return s, fmt.Errorf("the server answers %d, %q, %v", long.StatusCode, text, err)
	}
	status = statusOf(command.Process.Pid)
	s.used = fmt.Sprintf("%s (%s not of files)", status["VmRSS"], status["RssAnon"])
	return s, nil
}

// statusOf reads /proc/PID/status.
func statusOf(pid int) map[string]string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		var kib float64
		if _, err := fmt.Sscanf(strings.TrimSpace(value), "%f kB", &kib); err == nil {
			values[name] = fmt.Sprintf("%.2f GB", kib*1024/1e9)
		}
	}
	return values
}

// processorOf is a process's processor time, in ticks of 10 ms.
func processorOf(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var user, system int64
	if len(fields) > 12 {
		fmt.Sscan(fields[11], &user)
		fmt.Sscan(fields[12], &system)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
