/**
 * An event of a type or shape that this release does not know. It is never skipped; it makes the instance read-only.
 * Implements `docs/contract/domain.md#commands-and-events`.
 */
export class UnknownEventError extends Error {
  readonly eventType: string;

  constructor(stream: string, revision: number, eventType: string, schemaVersion: number) {
    super(
      `the event ${eventType} with schema version ${schemaVersion} at ${stream}@${revision} is not known to this release; ` +
        'a newer release wrote it',
    );
    this.name = 'UnknownEventError';
    this.eventType = eventType;
  }
}
