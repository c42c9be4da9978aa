package serve

import (
	"testing"

	"github.com/ossrun/ossrun/models"
	"github.com/ossrun/ossrun/models/checkpoint"
)

// The preview's figures are those that the guide states for a token of each model.
func TestPreview(t *testing.T) {
	m, err := New(t.Context(), Options{Settings: DefaultOptions().Settings, KeepAlive: -1,
		Notify: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for id, want := range map[string]int64{"20b": 2_600_000_000, "120b": 3_600_000_000} {
		e, _ := models.Lookup(id)
		n, err := tokenBytes(e.Spec, modelSettings(m.Backend(), checkpoint.Model{}, e.Spec,
			SettingsFor(m.Backend(), DefaultOptions())))
		if err != nil || n < want*97/100 || n > want*103/100 {
			t.Errorf("%s: %d bytes a token, want about %d: %v", id, n, want, err)
		}
		p, err := m.Preview(t.Context(), e)
		if err != nil || (p.Rate <= 0) == (p.Plan.OnDisk == 0) || p.Rate > 1e4 ||
			p.Needs < e.DownloadBytes-2e9 || p.Device == "" || p.Free == 0 {
			t.Errorf("%s: %+v: %v", id, p, err)
		}
	}
}
