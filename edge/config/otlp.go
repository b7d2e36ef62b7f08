package config

import (
	"errors"
	"math"
	"net/url"
	"strconv"
)

func readOTLP(c *Config, value string) string {
	u, err := url.Parse(value)
	switch {
	case err != nil || u.Hostname() == "":
		return "not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "neither http nor https"
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "holds a user, a query or a fragment"
	}
	c.OTLPEndpoint = value
	return ""
}

func readRatio(c *Config, value string) string {
	f, err := strconv.ParseFloat(value, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return "not a number"
	}
	if math.IsNaN(f) || f < 0 || f > 1 {
		return "out of range"
	}
	c.OTLPRatio = f
	return ""
}
