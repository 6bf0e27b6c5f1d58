/** The words of how a target is dialled. */
export const securityText = {
  security: 'Security',
  plain: 'none',
  tls: 'TLS',
  reality: 'REALITY',
  serverName: 'Server name',
  pins: 'Pins of its key (SHA-256, base64)',
  pinsHint: 'At least one. Type one and press Enter.',
  carriedBy: 'Carried by',
  publicKey: 'Public key (base64url)',
  shortId: 'Short id (hex, may be empty)',
} as const;
