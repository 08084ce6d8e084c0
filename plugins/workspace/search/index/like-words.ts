/** Words that people use for the same thing when they speak of programs. */
const GROUPS = (
  'abort cancel end interrupt kill stop terminate, add append insert push put, aside shelve stash, '
  + 'agent assistant bot, accept admit allow grant permit, amount count number quantity, '
  + 'analyse check examine inspect scan, answer reply respond response, api call endpoint route, '
  + 'app application program, archive bundle pack package tar zip, argument flag option parameter, '
  + 'array list sequence, ask prompt query question request, assert check ensure validate verify, '
  + 'attempt retry try, authenticate credential login signin, access authorize permission right role, '
  + 'await pending settle until wait, backup bundle export snapshot, bad invalid malformed wrong, '
  + 'begin boot init launch start, block hold lock, autostart boot service start startup, branch head ref, '
  + 'broken corrupt damaged invalid malformed, browser chromium page, bug defect error fault issue, '
  + 'build bundle compile, button click press, cache memo memoize remember, capital case lowercase uppercase, '
  + 'change edit modify mutate patch update, chart draw graph plot, chat conversation message, '
  + 'child process spawn subprocess, choose pick select, block chunk part piece segment, '
  + 'clean remove sanitize strip, cleanup collect prune purge sweep upkeep, caller client consumer user, '
  + 'clock time timer timezone, close end shut, code program source, collaborator member person user, '
  + 'appearance color colour style theme, cli command shell verb, comment note remark, '
  + 'compare comparison diff difference, complete done end finish, compress deflate gzip zip, '
  + 'concurrent parallel simultaneous, config configuration option preference setting, '
  + 'attach connect join link, console terminal tty, constant fixed literal, container docker podman, '
  + 'body contents text, convert encode map transform translate, clone copy duplicate fork, '
  + 'count number sum total, crash exception failure panic, build create generate make new, '
  + 'credential key password secret token, cron periodic recurring schedule, clip cut shorten trim truncate, '
  + 'background daemon server service, database db sqlite storage store, dead gone stale unused, '
  + 'deadline expire expiry timeout, decipher decrypt unseal, default fallback, '
  + 'debounce delay pace throttle wait, delete discard drop erase remove unlink, '
  + 'block deny forbid refuse reject, dependency library module package, deploy publish release, '
  + 'detect discover find recognise, change diff patch, directory folder, disable off, '
  + 'disk drive mount share storage volume, display draw render show view, doc document file, '
  + 'download fetch pull, draft unsaved unsent, backpressure drain flush slow, copy duplicate second twice, '
  + 'echo print show, composer editor input, embed include, cipher encrypt seal, encode serialize stringify, '
  + 'endless infinite, ensure guarantee require, enter give input type, env environment variable, '
  + 'equal identical match same, error exception failure fault problem, escape quote, '
  + 'event message notification signal, exclusive hold lock mutex, exist present there, end exit leave quit, '
  + 'expire old stale timeout, bundle export publish, addon extension plugin, extract pull unpack, '
  + 'error failure outage, fast quick, download fetch get load, attribute column field property, '
  + 'document file path, exclude filter ignore, find locate lookup search, checksum digest fingerprint hash, '
  + 'first initial, flag option switch, clear delete forget, format layout, forward proxy relay, '
  + 'available free, complete full whole, function method procedure, approximate fuzzy similar, '
  + 'create generate make mint, fetch get read, forge github gitlab remote, group module plugin, '
  + 'check guard protect, handle process, header heading, hidden invisible secret, conceal hide mask redact, '
  + 'history log past record, callback hook listener, host machine server, icon image picture, '
  + 'id identifier key name, idle inactive, image photo picture, import include load, '
  + 'inbound incoming ingest received, catalogue index, init initialise setup, install setup, '
  + 'interrupted recover resume unfinished, call invoke run, bug issue ticket, element entry item row, '
  + 'job task work, combine concat join merge, json parse, hotkey key shortcut, grammar language, '
  + 'big huge large long, last latest recent, launch run spawn start, '
  + 'budget cap limit maximum quota rate throttle, address link url, catalogue list roster, '
  + 'listen subscribe wait, llm model, journal log record, login session signin, iterate loop repeat, '
  + 'computer host machine system, main primary, administer manage, declaration manifest, limit maximum most, '
  + 'member person roster user, heap memory ram, message notice text, attributes metadata, '
  + 'call function method, migrate move upgrade, absent lacking missing, attach mount, move rename transfer, '
  + 'form multipart upload, many multiple several, label name title, net network, fresh new, '
  + 'alert notification notify push, count digit number, object record, obsolete outdated stale, '
  + 'former old previous stale, open start, flag option setting, order rank sort, cors origin site, '
  + 'output print result stdout, admin owner, page site, commands menu palette, decode interpret parse read, '
  + 'part piece section, passphrase password secret, credential hidden password secret, '
  + 'delay pause sleep wait, human person user, device mobile phone, interval poll repeat, port socket, '
  + 'preview show, nice priority, confidential private secret, error issue problem, child process program, '
  + 'account profile, gateway proxy relay, publish release share, publish push send, put set write, '
  + 'backlog queue waiting, entropy random, part range slice, load parse read, receiver recipient subscriber, '
  + 'entry log record, recover repair restore resume, cron recurring repeated schedule, forward redirect, '
  + 'refresh reload renew, keep persist remember store, forge remote upstream, delete drop remove strip, '
  + 'fix recover repair, again loop repeat retry, replace substitute, report summary, git repo repository, '
  + 'call request, need require, clear reset undo, find resolve, relaunch restart, '
  + 'recover restore revert rollback undo, outcome output result, continue recover resume, give return, '
  + 'permission rights role, list members roster, path route, entry line row, policy rule, execute launch run, '
  + 'safe secure, keep persist save store write, detect scan search, clock cron schedule timer, area scope, '
  + 'find lookup query search, another other second, protection safety security, deliver post send, '
  + 'order sequence, daemon host server service, assign put set, finish resolve settle, '
  + 'schema shape structure type, bash shell zsh, brief short, display print show, effect side, login sign, '
  + 'fingerprint signature, quiet silent, fuzzy like similar, once one single, bytes length size, ignore skip, '
  + 'backup checkpoint point savepoint snapshot, connection socket, program software, divide separate split, '
  + 'condition state status, condition health status, disk storage store, flow pipe stream, send submit, '
  + 'listen subscribe watch, propose recommend suggest, digest overview summary, help support, '
  + 'mirror sync synchronise, grid table, label tag, group team, scaffold template, temporary transient, '
  + 'check test, string text words, thread worker, limit pace rate throttle, ticket token, '
  + 'clock date moment time when, heading name title, tool utility, trace track, follow track watch, '
  + 'move send transfer, bin recycle trash, hierarchy tree, attempt probe test try, kind type, service unit, '
  + 'release unlock, detach unmount, dead unreferenced unused, change update upgrade, send upload, '
  + 'consumption usage, data value, provider vendor, check confirm verify, release revision version, '
  + 'guest stranger visitor, alert warn, monitor observe watch, http site web, pane window, term word'
)
  .split(', ')
  .map(group => group.split(' '))

/** For each word, in the form that `stem` gives it, the others of its groups. */
export const likeWords = (stem: (word: string) => string | undefined): ReadonlyMap<string, ReadonlySet<string>> => {
  const like = new Map<string, Set<string>>()
  for (const group of GROUPS) {
    const stems = new Set(group.flatMap(word => stem(word) ?? []))
    for (const one of stems) {
      const others = like.get(one) ?? new Set()
      like.set(one, others)
      for (const other of stems) if (other !== one) others.add(other)
    }
  }
  return like
}
