/**
 * All requests of a page to a server of another origin, as the source of a function for the page: `(base, token) =>
 * Promise<read[]>`.
 */
export const ATTEMPTS = String.raw`async (base, token) => {
  const read = []
  const later = promise => Promise.race([promise, new Promise(done => setTimeout(done, 4000))]).catch(() => {})
  const tag = (name, set) => later(new Promise(done => {
    const element = document.createElement(name)
    element.onload = element.onerror = done
    Object.assign(element, set)
    document.body.append(element)
  }))
  const gets = [
    '/health', '/openapi.json', '/reference', '/info', '/system/sign-in', '/agents', '/system/control/tokens',
  ]
  const types = [
    'text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/json',
  ]
  const posts = [
    ['/agent', { prompt: 'write stolen.txt\n| stolen', conversationId: 'stolen' }], ['/system/session', {}],
    ['/system/control/tokens', { label: 'stolen', scope: 'land' }], ['/system/sessions/revoke', {}],
    ['/system/browsers/web-stolen/page', { action: 'open', url: 'about:blank' }],
  ]
  const asks = []
  const ask = (kind, path, options) => asks.push(later((async () => {
    const answer = await fetch(base + path, { signal: AbortSignal.timeout(3000), ...options })
    if (answer.type !== 'opaque' && answer.type !== 'opaqueredirect')
      read.push([kind, path, answer.status, (await answer.text()).slice(0, 80)].join(' '))
  })()))
  for (const path of gets) {
    ask('get', path)
    ask('get with credentials', path, { credentials: 'include' })
    ask('no-cors', path, { mode: 'no-cors', credentials: 'include' })
    ask('with a token', path, { headers: { 'x-sandbox-control': token, authorization: 'Bearer ' + token } })
    ask('head', path, { method: 'HEAD' })
  }
  for (const [path, body] of posts) {
    const text = JSON.stringify(body)
    const post = { method: 'POST', body: text }
    for (const type of types) {
      const headers = { 'content-type': type }
      ask('post ' + type, path, { ...post, headers })
      ask('no-cors ' + type, path, { ...post, mode: 'no-cors', credentials: 'include', headers })
    }
    const signed = { 'content-type': 'application/json', authorization: 'Bearer ' + token }
    ask('post with a token', path, { ...post, headers: signed })
    ask('kept alive', path, { ...post, mode: 'no-cors', keepalive: true })
    navigator.sendBeacon(base + path, new Blob([text], { type: 'text/plain' }))
    for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const frame = document.createElement('iframe')
      frame.name = 'f' + Math.random()
      const form = document.createElement('form')
      Object.assign(form, { action: base + path, method: 'post', enctype, target: frame.name })
      const field = document.createElement('input')
      // As plain text the body reads as JSON with one more field.
      Object.assign(field, { name: text.slice(0, -1) + ', "x": "', value: '"}' })
      form.append(field)
      document.body.append(frame, form)
      form.submit()
    }
  }
  for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) ask(method, '/agents/x', { method })
  const sockets = [
    '/system/terminal?session=web-1&ticket=x', '/system/browser-view?session=web-1&ticket=x', '/events', '/',
  ]
  for (const path of sockets) asks.push(later(new Promise(done => {
    const socket = new WebSocket(base.replace('http', 'ws') + path)
    socket.onopen = () => { read.push('socket ' + path); done() }
    socket.onmessage = ({ data }) => read.push('socket says ' + data)
    socket.onerror = done
  })))
  asks.push(later(new Promise(done => {
    const source = new EventSource(base + '/events', { withCredentials: true })
    source.onmessage = ({ data }) => { read.push('event ' + data); done() }
    source.onerror = done
  })))
  for (const path of ['/health', '/openapi.json', '/reference', '/info']) {
    const url = base + path
    for (const name of ['script', 'img', 'video', 'embed']) asks.push(tag(name, { src: url }))
    asks.push(tag('link', { rel: 'stylesheet', href: url }), tag('link', { rel: 'prefetch', href: url }))
    asks.push(tag('link', { rel: 'preload', as: 'fetch', href: url }), tag('object', { data: url }))
    asks.push(tag('iframe', { src: url }).then(() => {
      for (const frame of document.querySelectorAll('iframe')) try {
        const text = frame.contentDocument?.body?.innerText
        if (text && frame.src.startsWith(base)) read.push('frame ' + text.slice(0, 80))
      } catch {}
    }))
  }
  const worker = 'onmessage = async ({ data }) => {'
    + ' try { const answer = await fetch(data); postMessage(await answer.text()) } catch { postMessage("") } }'
  asks.push(later(new Promise(done => {
    const made = new Worker(URL.createObjectURL(new Blob([worker])))
    made.onmessage = ({ data }) => { if (data) read.push('worker ' + data.slice(0, 80)); done() }
    made.postMessage(base + '/health')
  })))
  if (navigator.serviceWorker) {
    const workers = navigator.serviceWorker
    asks.push(later(workers.register(base + '/reference').then(() => read.push('service worker of theirs'))))
    asks.push(later(workers.register('/worker.js').then(() => workers.ready).then(() => new Promise(done => {
      workers.onmessage = ({ data }) => { if (data) read.push('service worker ' + data.slice(0, 80)); done() }
      workers.ready.then(({ active }) => active.postMessage(base + '/health'))
    }))))
  }
  for (const path of ['/reference', '/openapi.json']) {
    const opened = open(base + path)
    if (opened) asks.push(later(new Promise(done => {
      addEventListener('message', ({ origin, data }) => {
        if (origin === new URL(base).origin) read.push('message ' + JSON.stringify(data))
      })
      setTimeout(() => {
        try {
          const text = opened.document.body.innerText
          if (text) read.push('window ' + text.slice(0, 80))
        } catch {}
        opened.postMessage({ type: 'token' }, '*')
        setTimeout(() => { opened.close(); done() }, 300)
      }, 700)
    })))
  }
  await Promise.all(asks)
  return read
}`

/** A service worker that fetches the address of each message and answers with the text. */
export const WORKER = `onmessage = async ({ source, data }) => {
  try {
    const answer = await fetch(data)
    source.postMessage(await answer.text())
  } catch {
    source.postMessage('')
  }
}
onactivate = event => event.waitUntil(clients.claim())`
