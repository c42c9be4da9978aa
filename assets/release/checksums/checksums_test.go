package checksums

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// read reads a file of testdata: a key pair, and a list signed by minisign 0.11.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A signature of the minisign program is valid, and no other.
func TestVerify(t *testing.T) {
	list, signature, key := read(t, File), read(t, Signature), read(t, "key.pub")
	found, err := Verify([]byte(list), []byte(signature), key, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	const want = "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35"
	if got := found.Sum(Name("1.2.3", "linux", "amd64")); got != want {
		t.Errorf("the checksum is %q", got)
	}
	for _, name := range []string{"ossrun_1.2.3_linux", "ossrun_1.2.3_linux_amd64.tar", "", ".*"} {
		if got := found.Sum(name); got != "" {
			t.Errorf("%q has the checksum %q", name, got)
		}
	}
	lines := strings.Split(signature, "\n")
	other := read(t, "other.pub")
	id := strings.Split(other, "\n")[1][:14] // what tells keys apart, with the bytes of another
	for name, c := range map[string]struct{ list, signature, key, version, want string }{
		"another digit":   {strings.Replace(list, "d4735", "d4736", 1), signature, key, "1.2.3", "not those that were signed"},
		"a line more":     {list + "\n", signature, key, "1.2.3", "not those that were signed"},
		"no list":         {"", signature, key, "1.2.3", "not those that were signed"},
		"another version": {list, signature, key, "1.2.4", `is of "ossrun 1.2.3", not of "ossrun 1.2.4"`},
		"a comment put in": {list, strings.Replace(signature, "ossrun 1.2.3", "ossrun 1.2.4", 1), key, "1.2.4",
			"not those that were signed"},
		"a comment's mark": {list, strings.Replace(signature, "\ntrusted", "\ntrustee", 1), key, "1.2.3",
			"not those that were signed"},
		"another key": {list, signature, other, "1.2.3", "by another key"},
		"another key's id": {list, strings.Join([]string{lines[0], id + lines[1][14:], lines[2], lines[3]}, "\n"),
			other, "1.2.3", "not those that were signed"},
		"no signature":     {list, "", key, "1.2.3", "not in minisign's format"},
		"a page":           {list, "<html>\n<body>\n</body>\n</html>\n", key, "1.2.3", "not in minisign's format"},
		"half a signature": {list, signature[:len(signature)/2], key, "1.2.3", "not in minisign's format"},
		"a damaged key":    {list, signature, key[:len(key)-9], "1.2.3", "is damaged"},
		"no key":           {list, signature, Key, "1.2.3", ErrNoKey.Error()},
		"an empty key":     {list, signature, "", "1.2.3", ErrNoKey.Error()},
	} {
		_, err := Verify([]byte(c.list), []byte(c.signature), c.key, c.version)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The key of this folder is a comment, or one of minisign's.
func TestKey(t *testing.T) {
	_, err := Verify(nil, []byte(read(t, Signature)), Key, "1.2.3")
	if err == nil || strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

func TestSign(t *testing.T) {
	list, secret, key := []byte(read(t, File)), read(t, "key.sec"), read(t, "key.pub")
	signature, err := Sign(list, secret, key, "1.2.3") // Ed25519 is without chance
	if err != nil || !bytes.Equal(signature, []byte(read(t, Signature))) {
		t.Errorf("%v\n%s", err, signature)
	}
	for name, c := range map[string]struct{ secret, key, version, want string }{
		"a password":     {read(t, "password.sec"), read(t, "other.pub"), "1.2.3", "has a password"},
		"no key":         {"", key, "1.2.3", "not one of minisign's"},
		"a public key":   {key, key, "1.2.3", "not one of minisign's"},
		"another's half": {secret, read(t, "other.pub"), "1.2.3", "by another key"},
		"no public key":  {secret, Key, "1.2.3", ErrNoKey.Error()},
		"two lines":      {secret, key, "1.2.3\n", "single line"},
	} {
		if _, err := Sign(list, c.secret, c.key, c.version); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The minisign program accepts our signature.
func TestMinisignAgrees(t *testing.T) {
	program, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("apt-get install minisign; what it signed is in testdata")
	}
	list := []byte("0123  ossrun_2.0.0_linux_arm64\n")
	signature, err := Sign(list, read(t, "key.sec"), read(t, "key.pub"), "2.0.0")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, text := range map[string][]byte{File: list, Signature: signature} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(program, "-V", "-p", "testdata/key.pub", "-m",
		filepath.Join(folder, File)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Trusted comment: ossrun 2.0.0") {
		t.Errorf("%v: %s", err, out)
	}
}
