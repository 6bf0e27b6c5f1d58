/** Projecting can't go on, and trying again would not help: the runner stops and says why. */
export class ProjectionsStopped extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProjectionsStopped';
  }
}
