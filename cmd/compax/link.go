package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/askucher/compax-core/sdk/local"
)

func (a *app) accountLinkCommand() *cobra.Command {
	var wait bool
	cmd := command("link TICKET", "Make this profile a further device, without the phrase", args("TICKET"), nil)
	cmd.Long = `Takes the ticket that a device of the account shows (compax devices ticket), prints
an offer, and waits until that device approves it (compax devices approve OFFER).
Interrupted, it goes on when it is run again with the same profile. A linked device
shows what the account's archive has of the past and reads what is said from now on;
it does not hold the account's key, so revoking asks it for the recovery phrase.`
	cmd.Example = example(`compax devices ticket --profile ada`, `compax account link TICKET --profile tablet`, `compax devices approve OFFER --profile ada`)
	cmd.Flags().BoolVar(&wait, "wait", true, "wait for the approval; --wait=false ends at once, with exit code 3 while it is missing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		profile, dir, err := a.chosen(true)
		if err != nil {
			return err
		}
		// What an interrupted linking leaves stays: the next run shows the same offer.
		if _, err := makeProfileDir(dir); err != nil {
			return err
		}
		self, err := a.engines.link(cmd.Context(), a, profile, dir, args[0], wait, func(offer string) error {
			if err := a.result(map[string]string{"offer": offer}, offer); err != nil {
				return err
			}
			a.say("On a device of the account: compax devices approve OFFER")
			return nil
		})
		if err != nil {
			return err
		}
		if a.json {
			return a.emit(self)
		}
		a.say("Welcome, %s. Profile %s is device %s of this account.", line(self.Name), self.Profile, self.Device)
		return nil
	}
	return cmd
}

func (a *app) ticketCommand() *cobra.Command {
	return command("ticket", "Show the code with which a further device begins", args(), func(cmd *cobra.Command, _ []string) error {
		return a.withLocal(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			t, err := p.Ticket(ctx, local.None{})
			if err != nil {
				return err
			}
			a.say("On the new device: compax account link TICKET. It holds no secret.")
			return a.result(t, t.Ticket)
		})
	})
}

func (a *app) approveCommand() *cobra.Command {
	cmd := command("approve OFFER", "Attest a further device, by the offer that it shows", args("OFFER"), nil)
	cmd.Long = `Takes the offer that compax account link prints on a new device, and makes that
device one of this account's. Take it from the device in your hand: whoever swaps
the offer on the way gets the device approved that he offered. A device that does
not hold the account's key asks for the recovery phrase, on standard input.`
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.with(cmd.Context(), func(ctx context.Context, p local.Profile) error {
			req := local.ApproveRequest{Offer: args[0]}
			var d local.Device
			err := a.withPhrase(func(text string) (err error) {
				req.Phrase = text
				d, err = p.Approve(ctx, req)
				return err
			})
			if err != nil {
				return err
			}
			return a.result(map[string]any{"device": d.Device, "approved": true}, "Device "+d.Device.String()+" is one of this account's now.")
		})
	}
	return cmd
}
