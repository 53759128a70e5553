package identity

import "fmt"

const loginDomain = "compax-login-v1"

const (
	// ChallengeSize is the size of the challenges that servers make, in bytes.
	ChallengeSize = 32
	// MinChallenge and MaxChallenge bound what a device signs, in bytes.
	MinChallenge = 16
	MaxChallenge = 64
)

// LoginMessage returns the bytes that a device signs to prove possession:
// "compax-login-v1" ‖ home[3] ‖ challenge. The home keeps one server from using
// a device's answer at another.
func LoginMessage(home Home, challenge []byte) []byte {
	b := make([]byte, 0, len(loginDomain)+len(home)+len(challenge))
	b = append(b, loginDomain...)
	b = append(b, home[:]...)
	return append(b, challenge...)
}

// SignLogin answers a challenge of a home with the device's key. It refuses a
// challenge that is shorter than MinChallenge or longer than MaxChallenge
// (ErrFormat, ErrSigner).
func SignLogin(home Home, challenge []byte, deviceKey Signer) (Signature, error) {
	if err := checkChallenge(challenge); err != nil {
		return Signature{}, err
	}
	pub, err := PublicKeyOf(deviceKey)
	if err != nil {
		return Signature{}, err
	}
	return sign(deviceKey, pub, LoginMessage(home, challenge))
}

// VerifyLogin checks a device's answer to a challenge that this home made. That
// the challenge is fresh and used once is the caller's to hold (ErrFormat,
// ErrSignature).
func VerifyLogin(device DevicePublicKey, home Home, challenge []byte, sig Signature) error {
	if err := checkChallenge(challenge); err != nil {
		return err
	}
	if !VerifyStrict(device[:], LoginMessage(home, challenge), sig[:]) {
		return fmt.Errorf("%w: login at home %s", ErrSignature, home)
	}
	return nil
}

func checkChallenge(challenge []byte) error {
	if len(challenge) < MinChallenge || len(challenge) > MaxChallenge {
		return fmt.Errorf("%w: login challenge of %d bytes, not %d to %d", ErrFormat, len(challenge), MinChallenge, MaxChallenge)
	}
	return nil
}
