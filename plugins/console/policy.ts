/** What a browser lets the page load; `connect` are origins that it sends requests to, beside its own. */
export const pagePolicy = (connect: readonly string[]): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' blob:",
    "media-src 'self'",
    ["connect-src 'self'", ...connect].join(' '),
    "frame-src 'self'",
    "worker-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    'trusted-types console',
  ].join('; ')

/** The address of WebSockets on the host of a page, and the origins of the token endpoints. */
export const connectOrigins = (base: string, tokenEndpoints: readonly string[]): string[] => [
  ...new Set([
    ...[URL.parse(base)?.origin].flatMap(origin => origin?.replace(/^http/, 'ws') ?? []),
    ...tokenEndpoints.flatMap(address => URL.parse(address)?.origin ?? []),
  ]),
]

/** What a browser lets the frame of an extension's page do: run one script and the code it is given, and no request. */
export const framePolicy = (hash: string): string =>
  [
    "default-src 'none'",
    `script-src 'sha256-${hash}' blob:`,
    "style-src 'unsafe-inline'",
    'img-src blob: data:',
    'media-src blob: data:',
    'font-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'self'",
    'sandbox allow-scripts',
  ].join('; ')

/** The worker that receives notifications loads nothing and asks nobody. */
export const WORKER_POLICY = "default-src 'none'"
