/** How a command ends: an exit code and one line. Implements `docs/contract/automation.md#the-command-line-svcctl`. */

export const exitCodes = {
  done: 0,
  /** Refused by the service, declined, rejected by a node, offline, or changed by somebody else meanwhile. */
  refused: 1,
  /** `plan` and `drift` found changes. */
  changes: 2,
  /** A missing option or file, or a wrong one. */
  usage: 3,
  /** The service cannot be reached, or is not trusted. */
  unreachable: 4,
  notSignedIn: 5,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends the command. */
export class Failure extends Error {
  readonly exitCode: ExitCode;
  /** Identifies the request in the service's log. */
  readonly requestId: string | null;
  /** HTTP status of the answer; 0 without one. */
  readonly status: number;
  /** How long the service asks to wait before a retry. */
  readonly retryAfterMs: number;

  constructor(
    exitCode: ExitCode,
    sentence: string,
    {
      requestId = null,
      status = 0,
      retryAfterMs = 0,
    }: Partial<Pick<Failure, 'requestId' | 'status' | 'retryAfterMs'>> = {},
  ) {
    super(sentence);
    this.name = 'Failure';
    this.exitCode = exitCode;
    this.requestId = requestId;
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }
}

export const usage = (sentence: string): Failure => new Failure(exitCodes.usage, sentence);
export const refused = (sentence: string): Failure => new Failure(exitCodes.refused, sentence);
export const declined = (): Failure => refused('declined; nothing was changed');
