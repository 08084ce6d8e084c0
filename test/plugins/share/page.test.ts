import t from 'tap'
import { Reduction } from '../../../plugins/share/page/reduction.js'
import { markdownHtml } from '../../../plugins/share/page/markdown.js'
import { Masker } from '../../../sdk/node/access/masker.js'
import { withChromium } from '../../support/browser/browser.js'
import { ownBrowser } from '../../support/browser/console.js'
import { daemonWith } from '../../support/daemon.js'
import { runTurn } from '../../support/turns.js'

const ELEMENTS = 'p|pre|code|strong|em|del|ul|ol|li|blockquote|table|tr|t[hd]|h[3-6]|br|hr'
const HOSTILE = [
  '</script><script>document.title = "ran"</script>',
  '<img src=x onerror="document.title = 1">',
  '[click](javascript:alert(1)) [data](data:text/html,x) ![pic](https://evil.example/x.png)',
  '<iframe src="https://evil.example"></iframe><style>body{display:none}</style>',
  '`</code><b>` **<u>bold</u>** <https://a.example/"onx=1> "onmouseover="x',
  '| <i>a</i> | b |\n| --- | --- |\n| [x](vbscript:x) | <svg onload=x> |',
  '```\n</pre><script>1</script>\n```',
  '\u202eright to left\u202c &lt;b&gt; &amp;amp;',
  '[ok](https://good.example/?a=1&b=2)',
]

t.test('of a text only characters survive, in a few elements', async t => {
  for (const text of HOSTILE) {
    const html = markdownHtml(text)
    const known = new RegExp(`</?(?:${ELEMENTS})(?: dir="auto"| start="[0-9]+")*>`, 'g')
    const links = /<a href="https:\/\/(?:good|a)\.example[^"<>]*" rel="noopener noreferrer nofollow">|<\/a>/g
    t.notMatch(html.replace(known, '').replace(links, ''), /[<>]/, html)
  }
  t.match(markdownHtml('[ok](https://good.example/?a=1&b=2)'), 'href="https://good.example/?a=1&#38;b=2"')
  t.match(markdownHtml('1 < 2 & "3"'), '1 &#60; 2 &#38; &#34;3&#34;')
  const begun = performance.now()
  t.ok(markdownHtml('*a '.repeat(400_000)).length > 1_000_000)
  t.ok(markdownHtml('> '.repeat(5_000)).length > 0)
  t.ok(performance.now() - begun < 5_000)
})

t.test('addresses and folders of the sandbox, keys and values are replaced', async t => {
  const place = {
    workspace: '/srv/box/work',
    data: '/srv/box/.data/1',
    publicPages: { url: 'https://box.example.org', host: 'files.example.org' },
    previews: { host: '127.0.0.1', zone: 'https://previews.example.org' },
  }
  const masker = new Masker([{ name: 'KEY', value: 'correct-horse-battery' }])
  const tokens = [{ token: '[[EMAIL_1]]', value: 'jane@example.net' }]
  const reduction = new Reduction({ masker, tokens, place, hosts: ['127.0.0.1:8787'] })
  for (const [given, left] of [
    ['see https://box.example.org/s/x-abc/?ticket=1 now', 'see [address] now'],
    ['ask Jane@example.net, not xjane@example.net', 'ask [[EMAIL_1]], not xjane@example.net'],
    ['http://port-1.localhost:8788/a', '[address]'],
    ['https://port-3000-abc.previews.example.org/x', '[address]'],
    ['https://files.example.org/p/abc', '[address]'],
    ['ws://127.0.0.1:8787/events', '[address]'],
    ['http://localhost:3000/app', 'http://localhost:3000/app'],
    ['https://box.example.org.evil.example/', 'https://box.example.org.evil.example/'],
    ['/srv/box/work/src/a.ts', '~/src/a.ts'],
    ['/srv/box/work2/a.ts', '/srv/box/work2/a.ts'],
    ['/srv/box/.data/1/agent/checkouts/c-1/src', '~/src'],
    ['correct-horse-battery and {{secret:OTHER}}', '[redacted] and [redacted]'],
    ['ghp_0123456789abcdefghijklmnop', '[redacted]'],
    ['a\u202eb\u200b', 'ab'],
    ['correct-\u200bhorse\u{e0041}-bat\u00adtery, ghp_\u20600123456789abcdefghijklmnop', '[redacted], [redacted]'],
  ] as const)
    t.equal(reduction.text(given), left)
  t.same(
    reduction.counts.sort((a, b) => (a.kind < b.kind ? -1 : 1)),
    [
      { kind: 'path', count: 2 },
      { kind: 'pattern', count: 2 },
      { kind: 'secret', count: 3 },
      { kind: 'shield', count: 1 },
    ],
  )
})

t.test('in a browser no script of a shared page runs, and nothing of the sandbox is read', withChromium(), async t => {
  const daemon = await daemonWith(t, ['share', 'agent', 'agents', 'settings'])
  const { client, url } = daemon
  await runTurn(client, 'hostile', `say begin\n${HOSTILE.map(text => `say ${text.split('\n')[0]}`).join('\n')}`)
  const shared = await client.call('POST /share', {
    ...{ conversationId: 'hostile', title: '</title><script>1</script>', detail: 'everything' },
  })
  const browser = await ownBrowser(t, url)
  const page = await browser.newPage()
  const faults: string[] = []
  page.on('console', message => {
    // The browser asks for an icon by itself.
    if (message.type() === 'error' && !message.location().url.endsWith('/favicon.ico')) faults.push(message.text())
  })
  page.on('request', request => void (request.url().startsWith(url) || faults.push(request.url())))
  await page.goto(shared.url!)
  t.equal(await page.title(), '</title><script>1</script>')
  t.equal(await page.locator('script, iframe, svg, u, b, i, body > style').count(), 0)
  t.equal(await page.locator('img').count(), 0)
  const attributes = await page.evaluate(
    `[...new Set([...document.querySelectorAll('main *')].flatMap(each => each.getAttributeNames()))].sort().join()`,
  )
  t.equal(attributes, 'class,datetime,dir,href,rel')
  t.same(faults, [])
})
