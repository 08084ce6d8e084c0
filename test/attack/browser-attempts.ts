/**
 * Everything a page can do to a server of another origin, as the source of a function of the page: `(base, token) =>
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
  const gets = ['/health', '/openapi.json', '/reference', '/info', '/system/sign-in', '/agents', '/system/control/tokens']
  const posts = [
    ['/agent', { prompt: 'write stolen.txt\n| stolen', conversationId: 'stolen' }], ['/system/session', {}],
    ['/system/control/tokens', { label: 'stolen', scope: 'land' }], ['/system/sessions/revoke', {}],
    ['/system/browsers/web-stolen/page', { action: 'open', url: 'about:blank' }],
  ]
  const asks = []
  const ask = (kind, path, options) => asks.push(later((async () => {
    const answer = await fetch(base + path, { signal: AbortSignal.timeout(3000), ...options })
    if (answer.type !== 'opaque' && answer.type !== 'opaqueredirect') read.push(kind + ' ' + path + ' ' + answer.status + ' ' + (await answer.text()).slice(0, 80))
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
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/json']) {
      ask('post ' + type, path, { method: 'POST', body: text, headers: { 'content-type': type } })
      ask('no-cors ' + type, path, { method: 'POST', mode: 'no-cors', credentials: 'include', body: text, headers: { 'content-type': type } })
    }
    ask('post with a token', path, { method: 'POST', body: text, headers: { 'content-type': 'application/json', authorization: 'Bearer ' + token } })
    ask('kept alive', path, { method: 'POST', mode: 'no-cors', body: text, keepalive: true })
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
  for (const path of ['/system/terminal?session=web-1&ticket=x', '/system/browser-view?session=web-1&ticket=x', '/events', '/']) asks.push(later(new Promise(done => {
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
    asks.push(tag('script', { src: base + path }), tag('img', { src: base + path }), tag('link', { rel: 'stylesheet', href: base + path }))
    asks.push(tag('link', { rel: 'prefetch', href: base + path }), tag('link', { rel: 'preload', as: 'fetch', href: base + path }), tag('video', { src: base + path }))
    asks.push(tag('object', { data: base + path }), tag('embed', { src: base + path }))
    asks.push(tag('iframe', { src: base + path }).then(() => {
      for (const frame of document.querySelectorAll('iframe')) try { if (frame.contentDocument?.body?.innerText && frame.src.startsWith(base)) read.push('frame ' + frame.contentDocument.body.innerText.slice(0, 80)) } catch {}
    }))
  }
  const worker = 'onmessage = async ({ data }) => { try { const answer = await fetch(data); postMessage(await answer.text()) } catch { postMessage("") } }'
  asks.push(later(new Promise(done => {
    const made = new Worker(URL.createObjectURL(new Blob([worker])))
    made.onmessage = ({ data }) => { if (data) read.push('worker ' + data.slice(0, 80)); done() }
    made.postMessage(base + '/health')
  })))
  if (navigator.serviceWorker) {
    asks.push(later(navigator.serviceWorker.register(base + '/reference').then(() => read.push('service worker of theirs'))))
    asks.push(later(navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(() => new Promise(done => {
      navigator.serviceWorker.onmessage = ({ data }) => { if (data) read.push('service worker ' + data.slice(0, 80)); done() }
      navigator.serviceWorker.ready.then(({ active }) => active.postMessage(base + '/health'))
    }))))
  }
  for (const path of ['/reference', '/openapi.json']) {
    const opened = open(base + path)
    if (opened) asks.push(later(new Promise(done => {
      addEventListener('message', ({ origin, data }) => { if (origin === new URL(base).origin) read.push('message ' + JSON.stringify(data)) })
      setTimeout(() => {
        try { if (opened.document.body.innerText) read.push('window ' + opened.document.body.innerText.slice(0, 80)) } catch {}
        opened.postMessage({ type: 'token' }, '*')
        setTimeout(() => { opened.close(); done() }, 300)
      }, 700)
    })))
  }
  await Promise.all(asks)
  return read
}`

/** A service worker that reads what it is told to. */
export const WORKER = `onmessage = async ({ source, data }) => { try { const answer = await fetch(data); source.postMessage(await answer.text()) } catch { source.postMessage('') } }
onactivate = event => event.waitUntil(clients.claim())`
