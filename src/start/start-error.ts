/** The start cannot go on; the message is one sentence for the person who started the service. */
export class StartError extends Error {}
