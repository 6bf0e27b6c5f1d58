/** What the main thread and a worker say to each other around the messages of a job. */

export type ToThread =
  { readonly kind: 'job'; readonly name: string } | { readonly kind: 'message'; readonly message: unknown };

export type ToMain =
  | { readonly kind: 'message'; readonly message: unknown }
  | { readonly kind: 'ended' }
  /** The job threw. */
  | { readonly kind: 'failed'; readonly error: string };
