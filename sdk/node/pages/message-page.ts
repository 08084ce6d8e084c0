const STYLE = 'body{font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;padding:0 1em}'

/** A text as the content of an element or of an attribute in double quotes. */
export const escapedHtml = (text: string): string => text.replace(/[&<>"]/g, each => `&#${each.charCodeAt(0)};`)

/** The content type and policy of a page with one message: it runs and loads nothing. */
export const MESSAGE_PAGE_HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
} as const

/** A page with one message, for a person whose browser asked. */
export const messagePage = (title: string, text: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">`
  + `<meta name="color-scheme" content="light dark"><title>${escapedHtml(title)}</title><style>${STYLE}</style>`
  + `<h1>${escapedHtml(title)}</h1><p>${escapedHtml(text)}</p></html>\n`

/** Whether a client wants a page rather than JSON, by its `accept`. */
export const wantsPage = (accept: string | undefined): boolean => (accept ?? '').includes('text/html')
