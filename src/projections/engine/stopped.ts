/** Projecting cannot continue, and a retry would not help: the runner stops, and the message says why. */
export class ProjectionsStopped extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProjectionsStopped';
  }
}
