/**
 * A user account: state, events and commands of the stream `svc-accounts`. E-mail and display name are sealed, so that
 * the log holds no personal data in clear. Also the form of user names and passwords. Implements
 * `docs/contract/rest.md#authentication-and-roles`.
 */
import type { RecordedCommand } from '../../kernel/event.js';
import type { FieldChange } from '../resource/change.js';
import type { ResourceMeta } from '../resource/meta.js';
import type { IfMatch } from '../resource/refusal.js';
import type { SealedSecret } from '../secret/sealed.js';
import { limits } from '../../kernel/limits.js';

/** Each role may do what the roles after it may. */
export const roles = ['admin', 'operator', 'viewer'] as const;
export type Role = (typeof roles)[number];

export interface UserState extends ResourceMeta {
  readonly username: string;
  readonly role: Role;
  readonly display_name: SealedSecret | null;
  readonly email: SealedSecret | null;
  /** A sealed Argon2id PHC string. */
  readonly password: SealedSecret;
  /** The claim `ver` of valid tokens: the id of the event that set the password, which no other password can share. */
  readonly token_version: string;
}

type UserFields = Omit<UserState, keyof ResourceMeta | 'token_version'>;

export type ProfileChanges = { readonly [F in 'display_name' | 'email']?: FieldChange<SealedSecret | null> };

export type UserEvent =
  | { readonly type: 'UserCreated'; readonly data: UserFields & { readonly user_id: string } }
  | {
      readonly type: 'UserProfileUpdated';
      readonly data: {
        readonly user_id: string;
        readonly changes: ProfileChanges;
      };
    }
  | {
      readonly type: 'UserPasswordChanged';
      readonly data: {
        readonly user_id: string;
        readonly password: SealedSecret;
        /** The same password under stronger hash parameters: tokens stay valid. */
        readonly rehashed?: true;
        /** Ids of the user's API tokens, if they end too. */
        readonly ended_api_tokens?: readonly string[];
      };
    }
  | {
      readonly type: 'SignedOut';
      readonly data: {
        readonly user_id: string;
        readonly username: string;
        /** The claim `jti` of the token that has ended. */
        readonly token_id: string;
      };
    };

export type UserCommand =
  | (UserFields & {
      readonly type: 'CreateUser';
      readonly id: string;
      /** Accepted without a change if there is a user already: two instances may create the first admin at once. */
      readonly onlyIfFirst: boolean;
    })
  | {
      readonly type: 'UpdateUserProfile';
      readonly id: string;
      readonly ifMatch: IfMatch;
      readonly display_name?: SealedSecret | null | undefined;
      readonly email?: SealedSecret | null | undefined;
    }
  /** Reverts an edit of a profile, if its fields still have the values that it set. */
  | {
      readonly type: 'RevertUserProfile';
      /** The command that the audit's entry shows. */
      readonly entry: RecordedCommand;
      /** By field, the id of the entry that set its present value. */
      readonly changedBy: ReadonlyMap<string, string>;
    }
  | {
      readonly type: 'ChangeUserPassword';
      readonly id: string;
      readonly ifMatch: IfMatch;
      readonly password: SealedSecret;
      /** The stored password that the caller has proved to know; null for a reset. */
      readonly replaces: SealedSecret | null;
      /** Ends the user's API tokens too. */
      readonly endsApiTokens?: boolean;
    }
  /** Stores the same password again. Accepted without a change when the password is no longer `replaces`. */
  | {
      readonly type: 'RehashUserPassword';
      readonly id: string;
      readonly password: SealedSecret;
      readonly replaces: SealedSecret;
    }
  /** Ends one token. Accepted without a change when it has ended already. */
  | { readonly type: 'SignOut'; readonly id: string; readonly tokenId: string };

const { passwordChars, usernameChars } = limits.accounts;
const username = new RegExp(`^[a-z0-9._-]{${usernameChars.min},${usernameChars.max}}$`);

/** The user name as stored and compared, in lower case; undefined for an invalid one. */
export function canonicalUsername(typed: string): string | undefined {
  const lowered = typed.toLowerCase();
  return username.test(lowered) ? lowered : undefined;
}

/** Whether a password has a valid length, in characters rather than UTF-16 units. */
export function isPassword(text: string): boolean {
  const characters = [...normalPassword(text)].length;
  return characters >= passwordChars.min && characters <= passwordChars.max;
}

/** The form in which a password is counted and compared, whatever keyboard typed it. */
export const normalPassword = (password: string): string => password.normalize('NFKC');
