// Package hubtest is a hub for tests: a server with Hugging Face's protocol for model repositories,
// a store of large files on another host (another port), and faults on request.
package hubtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Repo is a model repository.
type Repo struct {
	Commit string           // commit of every revision in Refs
	Refs   []string         // names; main is implied
	Files  map[string]*File // by path
	Gated  bool             // requires an authorised token
	Hidden bool             // private: requires the token
	Token  string           // the token that gives access
}

// Kind of a request.
type Kind string

// The requests of a download.
const (
	Info Kind = "info" // the list of files
	Head Kind = "head" // the description of a file
	Get  Kind = "get"  // bytes from the hub, or its redirect to the store
	CDN  Kind = "cdn"  // bytes from the store
)

// Request is the input of a fault.
type Request struct {
	Kind  Kind
	Path  string // of the file
	N     int    // earlier requests of this kind and path
	Range string // the header
}

// Fault is the fault of an answer; the zero Fault is none.
type Fault struct {
	Status     int           // this status and no content
	RetryAfter string        // with Status
	Cut        int64         // close the connection after so many bytes; at once if < 0
	Stall      time.Duration // wait before the body's second half
	Corrupt    bool          // flip a bit of the first byte sent
	NoRanges   bool          // always send the full file
	Total      int64         // the file's size in Content-Range, if > 0
	Length     int64         // Content-Length of a whole file, if > 0
	ETag       string        // another ETag
	BareList   bool          // a list without sizes and hashes
	Rate       int64         // bytes a second, if > 0
}

// Server is a hub and its store.
type Server struct {
	Hub, Store *httptest.Server
	Fault      func(Request) Fault // may be nil; called from many goroutines

	mu     sync.Mutex
	repos  map[string]*Repo
	counts map[string]int
	sent   map[string]int64 // bytes of bodies by path
	leaked bool
	rate   int64
	ahead  int // bytes of a connection's send buffer, if > 0
	live   int // the store refuses older signatures
	hold   *hold
}

// hold is the state of held bodies.
type hold struct {
	bytes   int64 // sent of all files
	once    sync.Once
	reached chan struct{}
	over    chan struct{}
}

// New starts a server.
func New() *Server {
	s := &Server{repos: map[string]*Repo{}, counts: map[string]int{}, sent: map[string]int64{}}
	s.Hub = httptest.NewServer(http.HandlerFunc(s.hub))
	s.Store = httptest.NewUnstartedServer(http.HandlerFunc(s.store))
	s.Store.Config.ConnState = s.connected
	s.Store.Start()
	return s
}

// connected bounds the data that a connection sends ahead.
func (s *Server) connected(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	ahead := s.ahead
	s.mu.Unlock()
	if tcp, ok := c.(*net.TCPConn); ok && state == http.StateNew && ahead > 0 {
		_ = tcp.SetWriteBuffer(ahead) // a system that refuses sends more ahead
	}
}

// Close stops it.
func (s *Server) Close() {
	s.Hub.CloseClientConnections()
	s.Store.CloseClientConnections()
	s.Hub.Close()
	s.Store.Close()
}

// Add adds or replaces a repository.
func (s *Server) Add(id string, r *Repo) {
	if r.Commit == "" {
		r.Commit = strings.Repeat("c0ffee42", 5)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.repos[id] = r
}

// Sent is the number of bytes sent of a file, over all requests; "" is all files.
func (s *Server) Sent(path string) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, sent := range s.sent {
		if path == "" || p == path {
			n += sent
		}
	}
	return n
}

// Requests is the number of requests of a kind, for a file or ("") for all.
func (s *Server) Requests(kind Kind, path string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, count := range s.counts {
		if k, p, _ := strings.Cut(key, " "); k == string(kind) && (path == "" || p == path) {
			n += count
		}
	}
	return n
}

// Leaked reports whether the store received a token.
func (s *Server) Leaked() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.leaked }

// Expire makes the store refuse all earlier addresses.
func (s *Server) Expire() { s.mu.Lock(); s.live++; s.mu.Unlock() }

// Throttle limits every answer to this many bytes a second; 0: no limit.
func (s *Server) Throttle(rate int64) { s.mu.Lock(); s.rate = rate; s.mu.Unlock() }

// SendAhead bounds the bytes of the store that the system buffers per connection; it applies to
// later connections.
func (s *Server) SendAhead(bytes int) { s.mu.Lock(); s.ahead = bytes; s.mu.Unlock() }

// HoldAt holds bodies after so many bytes of all files, until the next call; negative: no more. The
// returned channel is closed when one waits.
func (s *Server) HoldAt(bytes int64) (reached <-chan struct{}) {
	h := &hold{bytes: bytes, reached: make(chan struct{}), over: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hold != nil {
		close(s.hold.over)
	}
	s.hold = h
	return h.reached
}

// waitWhileHeld waits while bodies are held; false: its client has left.
func (s *Server) waitWhileHeld(r *http.Request) bool {
	for {
		sent := s.Sent("")
		s.mu.Lock()
		h := s.hold
		s.mu.Unlock()
		if h == nil || h.bytes < 0 || sent < h.bytes {
			return true
		}
		h.once.Do(func() { close(h.reached) })
		select {
		case <-h.over:
		case <-r.Context().Done():
			return false
		}
	}
}

// Reset clears the counters.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.counts)
	clear(s.sent)
}

func (s *Server) fault(kind Kind, path string, r *http.Request) Fault {
	s.mu.Lock()
	key := string(kind) + " " + path
	n := s.counts[key]
	s.counts[key]++
	f, rate := s.Fault, s.rate
	s.mu.Unlock()
	if f == nil {
		return Fault{Rate: rate}
	}
	fault := f(Request{kind, path, n, r.Header.Get("Range")})
	if fault.Rate == 0 {
		fault.Rate = rate
	}
	return fault
}

// refuse answers as the hub does: a status, and its meaning in a header.
func refuse(w http.ResponseWriter, status int, code, message string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.Header().Set("X-Error-Message", message)
	w.WriteHeader(status)
}

// repo finds a repository that is visible to the request.
func (s *Server) repo(w http.ResponseWriter, r *http.Request, id string) *Repo {
	s.mu.Lock()
	repo := s.repos[id]
	s.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case token == "unknown":
		refuse(w, 401, "", "Invalid credentials in Authorization header")
	case repo == nil && token == "":
		refuse(w, 401, "RepoNotFound", "Invalid username or password.")
	case repo == nil, repo.Hidden && token != repo.Token:
		refuse(w, 404, "RepoNotFound", "Repository not found")
	default:
		return repo
	}
	return nil
}

func (s *Server) hub(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, "/api/models/"); ok {
		parts := strings.SplitN(rest, "/", 4)
		if len(parts) >= 2 {
			repo := s.repo(w, r, parts[0]+"/"+parts[1])
			switch {
			case repo == nil:
			case len(parts) == 4 && parts[2] == "revision":
				s.info(w, r, parts[0]+"/"+parts[1], repo, parts[3])
			case len(parts) == 4 && parts[2] == "tree":
				s.tree(w, r, repo, parts[3])
			case len(parts) == 2:
				s.info(w, r, parts[0]+"/"+parts[1], repo, "main")
			default:
				http.NotFound(w, r)
			}
			return
		}
	}
	parts := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 5)
	if len(parts) < 5 || parts[2] != "resolve" {
		http.NotFound(w, r)
		return
	}
	if repo := s.repo(w, r, parts[0]+"/"+parts[1]); repo != nil {
		s.resolve(w, r, repo, parts[3], parts[4])
	}
}

// at checks a revision.
func (repo *Repo) at(w http.ResponseWriter, escaped string) bool {
	revision, err := url.PathUnescape(escaped)
	if err == nil && (revision == "main" || revision == repo.Commit ||
		slices.Contains(repo.Refs, revision)) {
		return true
	}
	refuse(w, 404, "RevisionNotFound", "Invalid rev id: "+revision)
	return false
}

func (repo *Repo) paths() []string {
	var list []string
	for path := range repo.Files {
		list = append(list, path)
	}
	slices.Sort(list)
	return list
}

func (s *Server) info(w http.ResponseWriter, r *http.Request, id string, repo *Repo,
	revision string) {
	fault := s.fault(Info, "", r)
	if broken(w, fault) || !repo.at(w, revision) {
		return
	}
	siblings := []map[string]any{}
	for _, path := range repo.paths() {
		f := repo.Files[path]
		entry := map[string]any{"rfilename": path}
		if r.URL.Query().Has("blobs") && !fault.BareList {
			entry["size"], entry["blobId"] = f.Size, "0000000000000000000000000000000000000000"
			if f.LFS {
				entry["lfs"] = map[string]any{"sha256": f.SHA256(), "size": f.Size,
					"pointerSize": 134}
			}
		}
		siblings = append(siblings, entry)
	}
	writeJSON(w, map[string]any{"_id": "1", "id": id, "modelId": id, "sha": repo.Commit,
		"private": repo.Hidden, "gated": repo.Gated,
		"tags": []string{}, "downloads": 1, "likes": 1, "siblings": siblings})
}

func (s *Server) tree(w http.ResponseWriter, r *http.Request, repo *Repo, revision string) {
	revision, _, _ = strings.Cut(revision, "/")
	if broken(w, s.fault(Info, "", r)) || !repo.at(w, revision) {
		return
	}
	entries := []map[string]any{}
	for _, path := range repo.paths() {
		f := repo.Files[path]
		entry := map[string]any{"type": "file", "oid": strings.Repeat("0", 40), "size": f.Size,
			"path": path}
		if f.LFS {
			entry["lfs"] = map[string]any{"oid": f.SHA256(), "size": f.Size, "pointerSize": 134}
		}
		entries = append(entries, entry)
	}
	writeJSON(w, entries)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that disconnected needs no answer
}

// broken answers with a fault's status, if set.
func broken(w http.ResponseWriter, f Fault) bool {
	if f.Status == 0 {
		return false
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.WriteHeader(f.Status)
	return true
}

// resolve describes a file, and sends it or a redirect to the store.
func (s *Server) resolve(w http.ResponseWriter, r *http.Request, repo *Repo, revision,
	escaped string) {
	path, err := url.PathUnescape(escaped)
	f := repo.Files[path]
	kind := Get
	if r.Method == http.MethodHead {
		kind = Head
	}
	fault := s.fault(kind, path, r)
	h := w.Header()
	switch {
	case broken(w, fault), !repo.at(w, revision):
		return
	case repo.Gated && r.Header.Get("Authorization") == "":
		refuse(w, 401, "GatedRepo", "Access to model is restricted.")
		return
	case repo.Gated && r.Header.Get("Authorization") != "Bearer "+repo.Token:
		refuse(w, 403, "GatedRepo",
			"Access to model is restricted and you are not in the authorized list.")
		return
	case err != nil || f == nil:
		h.Set("X-Repo-Commit", repo.Commit)
		refuse(w, 404, "EntryNotFound", "Entry not found")
		return
	}
	etag := f.ETag()
	if fault.ETag != "" {
		etag = fault.ETag
	}
	h.Set("X-Repo-Commit", repo.Commit)
	h.Set("Accept-Ranges", "bytes")
	if f.LFS {
		s.mu.Lock()
		live := s.live
		s.mu.Unlock()
		h.Set("X-Linked-Etag", `"`+etag+`"`)
		h.Set("X-Linked-Size", strconv.FormatInt(f.Size, 10))
		h.Set("Location", fmt.Sprintf("%s/%s?of=%s&signed=%d", s.Store.URL, f.SHA256(),
			url.QueryEscape(path), live))
		w.WriteHeader(http.StatusFound)
		return
	}
	h.Set("ETag", `"`+etag+`"`)
	s.serve(w, r, path, f, fault)
}

// store sends a file of LFS.
func (s *Server) store(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("of")
	s.mu.Lock()
	if r.Header.Get("Authorization") != "" {
		s.leaked = true
	}
	expired := r.URL.Query().Get("signed") != strconv.Itoa(s.live)
	var found *File
	for _, repo := range s.repos {
		if f := repo.Files[path]; f != nil && "/"+f.SHA256() == r.URL.Path {
			found = f
		}
	}
	s.mu.Unlock()
	fault := s.fault(CDN, path, r)
	switch {
	case broken(w, fault):
	case expired:
		refuse(w, 403, "", "Request has expired")
	case found == nil:
		http.NotFound(w, r)
	default:
		w.Header().Set("ETag", `"of-the-store"`)
		s.serve(w, r, path, found, fault)
	}
}

// serve sends a file's bytes, or the requested range.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, path string, f *File, fault Fault) {
	from, to := int64(0), f.Size
	h := w.Header()
	if asked := r.Header.Get("Range"); asked != "" && !fault.NoRanges {
		first, last, _ := strings.Cut(strings.TrimPrefix(asked, "bytes="), "-")
		a, err := strconv.ParseInt(first, 10, 64)
		if err != nil || a >= f.Size {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", f.Size))
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		if b, err := strconv.ParseInt(last, 10, 64); err == nil {
			to = min(b+1, f.Size)
		}
		from = a
		total := f.Size
		if fault.Total > 0 {
			total = fault.Total
		}
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, total))
		h.Set("Content-Length", strconv.FormatInt(to-from, 10))
		w.WriteHeader(http.StatusPartialContent)
	} else {
		length := f.Size
		if fault.Length > 0 {
			length = fault.Length
		}
		h.Set("Content-Length", strconv.FormatInt(length, 10))
		w.WriteHeader(http.StatusOK)
	}
	if r.Method != http.MethodHead {
		s.body(w, r, path, f, from, to, fault)
	}
}

// body sends bytes from..to, with the fault applied.
func (s *Server) body(w http.ResponseWriter, r *http.Request, path string, f *File, from, to int64,
	fault Fault) {
	piece := int64(256 << 10)
	if fault.Rate > 0 {
		piece = max(1, min(piece, fault.Rate/50))
	}
	buffer := make([]byte, piece)
	corrupt, stall, half := fault.Corrupt, fault.Stall, from+(to-from)/2
	left := int64(-1)
	if fault.Cut != 0 {
		left = max(fault.Cut, 0)
	}
	for from < to && s.waitWhileHeld(r) {
		if stall > 0 && from >= half {
			select {
			case <-time.After(stall):
			case <-r.Context().Done():
				return
			}
			stall = 0
		}
		n := min(piece, to-from)
		if stall > 0 {
			n = max(1, min(n, half-from))
		}
		if left >= 0 {
			n = min(n, left)
		}
		if n == 0 {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler) // the connection ends here
		}
		if _, err := f.ReadAt(buffer[:n], from); err != nil && err != io.EOF {
			return
		}
		if corrupt {
			buffer[0] ^= 1
			corrupt = false
		}
		if _, err := w.Write(buffer[:n]); err != nil {
			return
		}
		from += n
		left = max(left-n, min(left, 0))
		s.mu.Lock()
		s.sent[path] += n
		s.mu.Unlock()
		if fault.Rate > 0 {
			if flusher, ok := w.(http.Flusher); ok {
				flusher.Flush()
			}
			time.Sleep(time.Duration(n) * time.Second / time.Duration(fault.Rate))
		}
	}
}
