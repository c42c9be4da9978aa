package device

import (
	"errors"
	"os"
)

// Opens several cards for one model. What must stay true: a user who names cards gets all of them,
// in that order, or an error and no card.

// OpenCards opens the GPUs of a list, in its order, each as OpenCard does. With an empty list it
// opens all that work; those that do not are left out.
func OpenCards(list []int) ([]*Card, error) {
	named := len(list) > 0
	if !named {
		n, err := Count()
		if err != nil {
			return nil, err
		}
		for i := range n {
			list = append(list, i)
		}
	}
	var cards []*Card
	var refused []error
	for _, i := range list {
		c, err := OpenCard([]int{i})
		switch {
		case err == nil:
			cards = append(cards, c)
		case named:
			for _, c := range cards {
				err = errors.Join(err, c.Close())
			}
			return nil, err
		default:
			refused = append(refused, err)
		}
	}
	if len(cards) > 0 {
		return cards, nil
	}
	if len(refused) > 0 {
		return nil, errors.Join(refused...)
	}
	c, err := OpenCard(nil) // no driver shows a GPU: it knows why
	if err != nil {
		return nil, err
	}
	return []*Card{c}, nil
}

// Count is how many GPUs the drivers show.
func Count() (n int, err error) {
	for _, l := range Libraries {
		d, err := openVendor(l.API, os.Getenv(l.Variable))
		if err != nil {
			continue // OpenCard reports it for the GPU that was wanted
		}
		shown, err := d.DeviceCount()
		if err = errors.Join(err, d.Close()); err != nil {
			return n, err
		}
		n += shown
	}
	return n, nil
}
