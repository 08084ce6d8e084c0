import t from 'tap'
import { conditionHolds } from '../../../sdk/conditions.js'
import { backendPath, entryAllowing } from '../../../plugins/console/web/data/extensions/page-calls.js'

t.test('a page makes a call only where an entry holds for its route and its parameters', t => {
  const allowed = {
    'GET /agents/first': ['GET /agents/{id}'],
    'GET /workspace/*': ['GET /workspace/tree'],
    'POST /x/**': [],
    'not an entry': ['GET /settings'],
  }
  const by = (call: string, input: object = {}) => entryAllowing(allowed, call, input)
  t.equal(by('GET /agents/{id}', { id: 'first' }), 'GET /agents/first')
  t.equal(by('GET /agents/{id}', { id: 'second' }), undefined)
  t.equal(by('GET /agents/{id}', { id: '..' }), undefined)
  t.equal(by('GET /agents/{id}', {}), undefined)
  t.equal(by('GET /agents/{id}', { id: { toString: () => 'first' } }), undefined)
  t.equal(by('GET /agents/{toString}', {}), undefined)
  t.equal(by('GET /workspace/tree'), 'GET /workspace/*')
  t.equal(by('GET /workspace/file'), undefined, 'the daemon did not name it')
  t.equal(by('GET /settings'), undefined)
  t.equal(by('POST /x/y'), undefined)
  t.equal(by(''), undefined)
  t.end()
})

t.test('a path of a page stays below the address of its extension', t => {
  t.equal(backendPath('ada.notes', '/list?of=all&more=a%2fb'), '/x/ada.notes/list?of=all&more=a%2fb')
  t.equal(backendPath('ada.notes', '/'), '/x/ada.notes/')
  for (const path of [
    ...['list', '/../x', '/a/../../other', '/a/./b', '/%2e%2e/b', '/a%2Fb', '/a%5cb', '/a\\b', '//host/', '/a//b'],
    ...['/a#b', '/a b', '/a\nb', '/ü/../..', ''],
  ])
    t.equal(backendPath('ada.notes', path), undefined, JSON.stringify(path))
  t.end()
})

t.test('conditions of manifests', t => {
  const keys = { role: 'owner', status: 'running', count: 3, ready: true, none: undefined }
  for (const [text, holds] of [
    [undefined, true],
    ["role == 'owner'", true],
    ['role == owner && status != idle', true],
    ['role == viewer || count == 3', true],
    ['!(role == viewer) && !none', true],
    ['status in [idle, running]', true],
    ["status in ['idle']", false],
    ['ready == true', true],
    ['none', false],
    ['constructor || toString', false],
    ['missing || ready', true],
    ['role == viewer && ready || false', false],
    ['role ==', false],
    ['role owner', false],
    ['(role == owner', false],
    ['role == owner)', false],
    ['; drop', false],
    ['', false],
  ] as const)
    t.equal(conditionHolds(text, keys), holds, text ?? 'none')
  t.end()
})
