module gateway-control-service/test/servers/reality

go 1.24.0

require (
	github.com/refraction-networking/utls v1.8.2
	github.com/xtls/reality v0.0.0-20260322125925-9234c772ba8f
	golang.org/x/crypto v0.48.0
)

require (
	github.com/andybalholm/brotli v1.0.6 // indirect
	github.com/cloudflare/circl v1.6.3 // indirect
	github.com/juju/ratelimit v1.0.2 // indirect
	github.com/klauspost/compress v1.17.4 // indirect
	github.com/kr/pretty v0.3.1 // indirect
	github.com/pires/go-proxyproto v0.11.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
)
