// The archive for a bug report.
//
// What must stay true: it contains nothing that identifies the user, the machine, files or keys;
// every removal is marked, so that a reader sees that there was something.

package doctor

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strings"
	"time"
)

type Bundle struct {
	Version string
	Report  *Report
	Config  []byte   // of the config file, empty if there is none
	Names   []string // of environment variables that have an effect, secret or not
	Time    time.Time
}

func (b *Bundle) Write(w io.Writer) error {
	report, err := json.MarshalIndent(b.Report, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	redact := newRedactor()
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, f := range []struct{ name, text string }{
		{"version.txt", b.Version + "\n"}, {"doctor.json", string(report) + "\n"},
		{"config.yaml", string(b.Config)}, {"environment.txt", environment(b.Names)},
	} {
		text := redact.text(f.text)
		if err := t.WriteHeader(&tar.Header{Name: "ossrun-report/" + f.name, Mode: 0o644,
			Size: int64(len(text)), ModTime: b.Time}); err != nil {
			return err
		}
		if _, err := io.WriteString(t, text); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// environment lists which of the variables are set, with values unless the name suggests a secret.
func environment(names []string) string {
	var b strings.Builder
	for _, name := range names {
		value, ok := os.LookupEnv(name)
		switch {
		case !ok:
			continue
		case secretName.MatchString(name):
			value = redacted
		}
		fmt.Fprintf(&b, "%s=%s\n", name, value)
	}
	return b.String()
}

const redacted = "[taken out]"

var (
	secretName = regexp.MustCompile(`(?i)(key|token|secret|password|passwd|credential|auth)`)
	// a member of the config file or of JSON with a name that suggests a secret value
	secretLine = regexp.MustCompile(`(?im)^(\s*"?[\w.-]*(?:key|token|secret|password|auth)[\w.-]*"?` +
		`\s*[:=]\s*)\S.*$`)
	// keys by their form: Hugging Face's, OpenAI's, GitHub's, Brave's, Bearer's
	secretForm = regexp.MustCompile(`\b(?:hf_|sk-|ghp_|github_pat_|BSA)[A-Za-z0-9_-]{12,}|` +
		`(?i:bearer)\s+[A-Za-z0-9._~+/=-]{8,}`)
	userinfo = regexp.MustCompile(`://[^/\s@"]+@`)
	address  = regexp.MustCompile(`\b(?:\d{1,3}\.){3}\d{1,3}\b`)
)

type redactor struct{ words [][2]string }

func newRedactor() *redactor {
	r := &redactor{}
	add := func(word, replacement string) {
		if len(word) > 2 {
			r.words = append(r.words, [2]string{word, replacement})
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		add(home, "~")
	}
	if host, err := os.Hostname(); err == nil {
		add(host, "[host]")
	}
	if u, err := user.Current(); err == nil && u.Username != "root" {
		add(u.HomeDir, "~")
		add(u.Username, "[user]")
	}
	// longest first, so that a home folder is replaced before the user name in it
	slices.SortFunc(r.words, func(a, b [2]string) int { return len(b[0]) - len(a[0]) })
	return r
}

func (r *redactor) text(s string) string {
	s = secretLine.ReplaceAllString(s, "${1}"+redacted)
	s = secretForm.ReplaceAllString(s, redacted)
	s = userinfo.ReplaceAllString(s, "://"+redacted+"@")
	s = address.ReplaceAllStringFunc(s, func(ip string) string {
		if strings.HasPrefix(ip, "127.") || ip == "0.0.0.0" {
			return ip
		}
		return "[address]"
	})
	for _, w := range r.words {
		s = strings.ReplaceAll(s, w[0], w[1])
	}
	return s
}
