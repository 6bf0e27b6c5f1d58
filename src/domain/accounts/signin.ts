/**
 * Sign-ins and refused sign-ins: the facts of the stream `svc-signins`. Facts are recorded, not decided.
 * Implements `docs/contract/domain.md#one-consistency-boundary-the-fleet` and `docs/contract/rest.md#audit`.
 */
import { eventOf, streams, type RecordedEvent } from '../../kernel/event.js';
import type { EventSchemas } from '../resource/declaration.js';

export type SigninEvent =
  | {
      readonly type: 'SignedIn';
      readonly data: { readonly user_id: string; readonly username: string; readonly address: string };
    }
  /** Id and name are null when there is no such account: typed names are never stored. */
  | {
      readonly type: 'SignInRefused';
      readonly data: { readonly user_id: string | null; readonly username: string | null; readonly address: string };
    };

export const signinEvents: EventSchemas<SigninEvent> = {
  SignedIn: {},
  SignInRefused: {},
};

/** A recorded event as a sign-in. */
export const signinEvent = (event: RecordedEvent): SigninEvent => eventOf(streams.signins, event);
