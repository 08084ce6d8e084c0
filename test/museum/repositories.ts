/** A repository of the museum, as a person has it. */
export interface Exhibit {
  /** What is special about it, as a phrase. */
  readonly name: string
  /**
   * Makes it, as the user who has it: bash in the empty folder `$W`, which becomes the workspace. `files` writes the
   * files that the journey changes, `begin` commits them, and `$B` is a folder beside the workspace.
   */
  readonly make: string
  /** The deployment shows `$B` behind the wall. */
  readonly reads?: true
  /** As the superuser, after `make`. */
  readonly last?: string
  /** The sentence that a private copy is refused with. */
  readonly copies?: RegExp
  /** The sentence that a landing is refused with; nothing is written. */
  readonly lands?: RegExp
  /** The sentence that a commit is refused with: what a hook or git says. */
  readonly commits?: RegExp
  /** Only as an ordinary user: the superuser writes anything. */
  readonly ordinary?: true
  /** The version of git, or the program, without which it cannot be made. */
  readonly needs?: { readonly git: readonly [major: number, minor: number] } | { readonly program: string }
  /** A further change, in the private copy. */
  readonly also?: {
    readonly run: string
    /** Files of the workspace after it has landed; `''`: gone. */
    readonly lands?: { readonly [path: string]: string | RegExp }
    /** The files that each have a line `more` at their end then, in the form of the others; names are bytes. */
    readonly appends?: RegExp
  }
  /** The filter whose program is missing, without which git is asked. */
  readonly lacks?: string
  /** A review shows what a filter gives, not what git stores. */
  readonly shows?: true
  /** Git ignores new files, so only renamed ones become part of the work. */
  readonly ignores?: true
  /** The one notice of each turn. */
  readonly notes?: RegExp
}

const MODULES = `cd $B; for r in inner lib other; do git init -q -b main $r; (cd $r; echo $r > $r.txt
    git add -A; git commit -qm init); done
  cd lib; git submodule --quiet add ../inner deep/inner; git commit -qm sub; cd $W; begin`
const MODULE_WORK = (folder: string, file: string) => ({
  run: `cd ${folder} && echo more >> ${file} && echo new > new.txt`,
  lands: { [`${folder}/${file}`]: /\nmore\n$/, [`${folder}/new.txt`]: 'new\n' },
})

const ATTRIBUTES = { auto: 'text=auto', text: 'text', crlf: 'text eol=crlf', lf: 'text eol=lf', none: '-text' }

/**
 * Every attribute of line ends on files with each kind of them, in a checkout with this setting; `late`: that came
 * after the checkout, whose files stay as they are.
 */
const lineEnds = (name: string, setting: string, late = false): Exhibit => ({
  name,
  make: `begin; mkdir ends
    ${Object.entries(ATTRIBUTES)
      .map(([kind, attributes]) => `echo 'ends/${kind}-* ${attributes}' >> .gitattributes`)
      .join('\n')}
    for k in ${Object.keys(ATTRIBUTES).join(' ')} plain; do
    printf 'one\\ntwo\\n' > ends/$k-lf; printf 'one\\r\\ntwo\\r\\n' > ends/$k-crlf; done
    git add -A; git commit -qm two; git config ${setting}
    ${late ? '' : 'rm ends/*; git checkout -q -- ends'}`,
  also: {
    run:
      `for f in ends/*; do if [ "$(tail -c 2 $f | head -c 1)" = "$(printf '\\r')" ]; then printf 'more\\r\\n' >> $f; `
      + 'else echo more >> $f; fi; done',
    appends: /^ends\//,
  },
})

export const EXHIBITS: readonly Exhibit[] = [
  { name: 'a plain one', make: 'begin' },
  lineEnds('every kind of line ends', 'core.autocrlf false'),
  lineEnds('every kind of line ends with core.autocrlf', 'core.autocrlf true'),
  lineEnds('every kind of line ends with core.autocrlf=input', 'core.autocrlf input'),
  lineEnds('every kind of line ends with core.eol=crlf', 'core.eol crlf'),
  lineEnds('every kind of line ends before core.autocrlf', 'core.autocrlf true', true),
  lineEnds('every kind of line ends before core.autocrlf=input', 'core.autocrlf input', true),
  lineEnds('every kind of line ends before core.eol=crlf', 'core.eol crlf', true),
  { name: 'sha256', make: 'begin --object-format=sha256' },
  { name: 'refs in a reftable', make: 'begin --ref-format=reftable', needs: { git: [2, 45] } },
  {
    name: 'without a commit',
    make: 'git init -q; files',
    copies: /begins from a commit, and no git repository of the workspace has one: make it/,
  },
  {
    name: 'a folder without git',
    make: 'files',
    copies: /begins from a commit, and no git repository of the workspace has one: make it/,
  },
  { name: 'an empty commit', make: 'git init -q -b main; git commit -q --allow-empty -m first' },
  {
    name: 'a shallow clone',
    make: `git init -q -b main $B/o; cd $B/o; files; git add -A; git commit -qm one
        git commit -q --allow-empty -m two; git clone -q --depth 1 file://$B/o $W`,
  },
  {
    name: 'a partial clone',
    make: `git init -q -b main $B/o; cd $B/o; files; git add -A; git commit -qm one; echo x >> sub/s.txt
        git commit -qam two; git config uploadpack.allowFilter true
        git clone -q --filter=blob:none file://$B/o $W`,
  },
  {
    name: 'objects borrowed from another clone',
    make: 'git init -q -b main $B/o; cd $B/o; files; git add -A; git commit -qm one; git clone -q --shared $B/o $W',
    reads: true,
  },
  {
    name: 'objects borrowed from a clone that no wall shows',
    make: 'git init -q -b main $B/o; cd $B/o; files; git add -A; git commit -qm one; git clone -q --shared $B/o $W',
    copies:
      /borrows objects from .*\/b\/o\/\.git\/objects, which the wall does not show: add this folder to wall\.read/,
  },
  {
    name: 'objects borrowed from a clone in the workspace',
    make: `begin; git clone -q --shared . in; echo in/ > .gitignore; git add -A; git commit -qm two; cd in
        git checkout -q -b work; echo x > x; git add -A; git commit -qm in`,
    also: { run: 'echo more >> in/x', lands: { 'in/x': 'x\nmore\n' } },
  },
  {
    name: 'a sparse checkout',
    make: 'begin; mkdir away; echo 1 > away/x; git add -A; git commit -qm two; git sparse-checkout set sub',
  },
  {
    name: 'a sparse checkout by patterns',
    make: `begin; mkdir away; echo 1 > away/x; git add -A; git commit -qm two
        git sparse-checkout set --no-cone '/*' '!/away/'`,
  },
  {
    name: 'a sparse index',
    make: `begin; mkdir -p away/in; echo 1 > away/in/x; git add -A; git commit -qm two
        git sparse-checkout set --cone --sparse-index sub`,
  },
  { name: 'an index of version 4', make: 'begin; git update-index --index-version 4' },
  { name: 'a split index', make: 'begin; git update-index --split-index' },
  {
    name: 'an untracked cache',
    make: 'begin; git config core.untrackedCache true; git update-index --force-untracked-cache',
  },
  { name: 'a graft', make: 'begin; git commit -q --allow-empty -m two; git rev-parse HEAD > .git/info/grafts' },
  {
    name: 'replace refs',
    make: `begin; echo x > sub/s.txt; git commit -qam two
        git replace HEAD:a.txt $(echo other | git hash-object -w --stdin); git replace HEAD~1 HEAD`,
  },
  {
    name: 'thousands of branches',
    make: `begin; c=$(git rev-parse HEAD); for n in $(seq 3000); do
        echo "create refs/heads/topic/$n $c"; done | git update-ref --stdin
        git pack-refs --all`,
  },
  {
    name: 'names of every kind',
    make: `files; printf 1 > 'q"uo'"'"'te'; printf 2 > 'back\\slash'; printf 3 > "$(printf 'line\\nbreak')"
        printf 4 > "$(printf 'bad\\377')"
      printf 5 > -rf; printf 6 > "$(printf '\\303\\251')"; printf 7 > "$(printf 'e\\314\\201')"
          printf 8 > $(printf 'n%.0s' $(seq 255)); printf 9 > ' blank '; printf 0 > '*'
      printf 1 > ':(top)x'; git init -q -b main; git add -A; git commit -qm first`,
    also: {
      run: `for f in *; do [ -f "$f" ] && case "$f" in [abc].txt) ;; *) echo more >> "./$f";; esac; done`,
      appends: /^(?!(?:[abc]\.txt$|made\/|sub\/))/,
    },
  },
  {
    name: 'core.autocrlf',
    make: `begin; git config core.autocrlf true; rm *.txt; git checkout -q -- .`,
  },
  {
    name: 'core.autocrlf=input over CRLF',
    make: `files; sed -i 's/$/\\r/' a.txt b.txt; git init -q -b main; git config core.autocrlf input; git add -A
        git commit -qm first`,
  },
  {
    name: 'CRLF that is committed',
    make: `files; sed -i 's/$/\\r/' *.txt; git init -q -b main; git add -A; git commit -qm first`,
  },
  {
    name: 'CRLF by attributes',
    make: `files; echo '*.txt text eol=crlf' > .gitattributes; git init -q -b main; git add -A
        git commit -qm first; rm *.txt; git checkout -q -- .`,
  },
  {
    name: 'core.eol=crlf',
    make: `files; echo '* text=auto' > .gitattributes; git init -q -b main; git config core.eol crlf; git add -A
        git commit -qm first; rm *.txt; git checkout -q -- .`,
  },
  {
    name: 'CRLF that attributes would normalize',
    make: `files; sed -i 's/$/\\r/' *.txt; git init -q -b main; git add -A; git commit -qm first
        echo '* text=auto' > .gitattributes; git add .gitattributes; git commit -qm two`,
  },
  {
    name: 'mixed line ends and no last one',
    make: `files; printf 'one\\r\\ntwo\\nthree' > a.txt; git init -q -b main; git add -A; git commit -qm first`,
  },
  {
    name: 'core.safecrlf',
    make: `begin; git config core.autocrlf true; git config core.safecrlf true; rm *.txt; git checkout -q -- .`,
  },
  {
    name: 'UTF-16 and a mark of order',
    make: `files; printf '\\357\\273\\277one\\ntwo\\n' > a.txt; iconv -t UTF-16 a.txt > u.txt
        echo 'u.txt working-tree-encoding=UTF-16' > .gitattributes; git init -q -b main; git add -A
        git commit -qm first`,
  },
  {
    name: 'a filter that encrypts',
    make: `git init -q -b main; git config filter.turn.clean 'tr a-z n-za-m'
        git config filter.turn.smudge 'tr a-z n-za-m'; git config filter.turn.required true
      echo '*.txt filter=turn' > .gitattributes; files; git add -A; git commit -qm first`,
    shows: true,
  },
  {
    name: 'a filter whose program is missing',
    make: `begin; echo 's.txt filter=gone' > sub/.gitattributes; git add -A; git commit -qm two
        git config filter.gone.clean 'no-such-program clean'
        git config filter.gone.smudge 'no-such-program smudge'; git config filter.gone.required true`,
    lacks: 'gone',
    notes: /the filter gone of root cannot run behind the wall/,
  },
  {
    name: 'a filter that drops a part, as for notebooks',
    make: `git init -q -b main; git config filter.strip.clean "sed /^out/d"; git config filter.strip.smudge cat
        git config filter.strip.required true; files; printf 'cell\nout 1\n' > sub/n.ipynb
        echo '*.ipynb filter=strip' > .gitattributes; git add -A; git commit -qm first; echo 'out 2' >> sub/n.ipynb`,
  },
  {
    name: 'git-crypt',
    make: `git init -q -b main; git-crypt init >/dev/null; echo '*.txt filter=git-crypt diff=git-crypt' > .gitattributes
        files; git add -A; git commit -qm first`,
    needs: { program: 'git-crypt' },
    shows: true,
  },
  {
    name: 'LFS',
    make: `git init -q -b main; git lfs install --local >/dev/null; git lfs track '*.bin' >/dev/null; files
        head -c 100000 /dev/zero > big.bin; git add -A; git commit -qm first`,
    needs: { program: 'git-lfs' },
    also: { run: 'echo more > big.bin', lands: { 'big.bin': 'more\n' } },
  },
  {
    name: 'ident',
    make: `files; echo '*.txt ident' > .gitattributes; printf '$Id$\\n' > sub/s.txt
        echo '*.txt ident' > sub/.gitattributes; git init -q -b main; git add -A; git commit -qm first; rm *.txt
        git checkout -q -- .`,
  },
  {
    name: 'submodules in submodules',
    make: `${MODULES}; git submodule --quiet add ../b/lib libs/lib; git submodule update -q --init --recursive
        git commit -qm subs`,
    also: MODULE_WORK('libs/lib/deep/inner', 'inner.txt'),
  },
  {
    name: 'a submodule in which a turn commits',
    make: `${MODULES}; git submodule --quiet add ../b/other other; git commit -qm subs`,
    also: {
      run: 'cd other && echo more >> other.txt && git -c user.name=a -c user.email=a@b.c commit -qam more',
      lands: { 'other/other.txt': 'other\nmore\n' },
    },
  },
  {
    name: 'a moved submodule with another name',
    make: `${MODULES}; git submodule --quiet add --name odd/name ../b/other moved; git commit -qm subs
        git mv moved away; git commit -qm moved`,
    also: MODULE_WORK('away', 'other.txt'),
  },
  {
    name: 'a submodule in a folder of dependencies',
    make: `${MODULES}; git submodule --quiet add ../b/lib vendor/lib; git submodule update -q --init --recursive
        git commit -qm subs`,
    also: MODULE_WORK('vendor/lib', 'lib.txt'),
  },
  {
    name: 'a submodule with a git folder of its own',
    make: `${MODULES}; git clone -q ../b/other own; git -c advice.addEmbeddedRepo=false add own
        git config -f .gitmodules submodule.own.path own; git config -f .gitmodules submodule.own.url ../b/other
        git add -A; git commit -qm subs`,
    also: MODULE_WORK('own', 'other.txt'),
  },
  {
    name: 'a submodule that is not checked out',
    make: `${MODULES}; git submodule --quiet add ../b/lib libs/lib; git commit -qm subs
        git submodule --quiet deinit -f libs/lib`,
    also: { run: 'cat libs/lib/lib.txt > seen.txt', lands: { 'seen.txt': 'lib\n' } },
  },
  {
    name: 'a submodule that was never fetched',
    make: `${MODULES}; git submodule --quiet add ../b/other other; git commit -qm subs
        git submodule --quiet deinit -f other; rm -rf .git/modules`,
  },
  {
    name: 'submodule.recurse',
    make: `${MODULES}; git submodule --quiet add ../b/other other; git commit -qm subs
        git config submodule.recurse true; git config diff.ignoreSubmodules none
        git config status.submoduleSummary true`,
    also: MODULE_WORK('other', 'other.txt'),
  },
  {
    name: 'a monorepo with workspaces',
    make: `files; echo '{"name":"m","private":true,"workspaces":["packages/*"]}' > package.json
        for p in one two; do mkdir -p packages/$p; echo '{"name":"'$p'","version":"1.0.0"}' > packages/$p/package.json
        done
      echo node_modules > .gitignore; mkdir -p node_modules/x packages/one/node_modules/y
          echo x > node_modules/x/index.js; ln -s ../packages/one node_modules/one; git init -q -b main
          git add -A; git commit -qm first`,
    also: { run: 'echo 1 > packages/one/index.js', lands: { 'packages/one/index.js': '1\n' } },
  },
  {
    name: 'in mid-rebase',
    make: `begin; git checkout -q -b x; echo x > sub/s.txt; git commit -qam x; git checkout -q main
        echo y > sub/s.txt; git commit -qam y; git rebase -q x || :`,
    lands: /in the middle of a rebase/,
  },
  {
    name: 'in mid-merge',
    make: `begin; git checkout -q -b x; echo x > sub/s.txt; git commit -qam x; git checkout -q main
        echo y > sub/s.txt; git commit -qam y; git merge -q x || :`,
    lands: /in the middle of a merge/,
  },
  {
    name: 'in mid-cherry-pick',
    make: `begin; git checkout -q -b x; echo x > sub/s.txt; git commit -qam x; git checkout -q main
        echo y > sub/s.txt; git commit -qam y; git cherry-pick x >/dev/null 2>&1 || :`,
    lands: /in the middle of a cherry-pick/,
  },
  {
    name: 'in mid-revert',
    make: `begin; echo x > sub/s.txt; git commit -qam x; echo y > sub/s.txt; git commit -qam y
        git revert --no-edit HEAD~1 >/dev/null 2>&1 || :`,
    lands: /in the middle of a revert/,
  },
  {
    name: 'in mid-bisect',
    make: `begin; git commit -q --allow-empty -m two; git commit -q --allow-empty -m three; git bisect start -q
        git bisect bad; git bisect good HEAD~2`,
  },
  {
    name: 'a bare one beside',
    make: 'begin; git init -q --bare beside.git; git push -q ./beside.git main; echo beside.git > .git/info/exclude',
  },
  {
    name: 'a bare one that is tracked',
    make: 'begin; git init -q --bare fixtures.git; rm fixtures.git/hooks/*; git add -A; git commit -qm two',
  },
  {
    name: 'of another owner',
    make: 'begin',
    last: 'chown -R 12345:12345 $W',
    ordinary: true,
    copies: /has no room for the branch agent\/one: .*unable to create directory/,
  },
  {
    name: 'read-only',
    make: 'begin',
    last: 'chmod -R a-w $W',
    ordinary: true,
    copies: /has no room for the branch agent\/one: .*unable to create directory/,
  },
  {
    name: 'hooks that fail',
    make: `begin
        for h in pre-commit commit-msg post-checkout post-commit reference-transaction pre-applypatch post-index-change
        do printf '#!/bin/sh\\necho this hook says no >&2\\nexit 1\\n' > .git/hooks/$h
        chmod 755 .git/hooks/$h; done
        rm .git/hooks/reference-transaction`,
    commits: /this hook says no/,
  },
  {
    name: 'a hook that forbids refs to move',
    make: `begin; printf '#!/bin/sh\\necho no ref moves >&2\\nexit 1\\n' > .git/hooks/reference-transaction
        chmod 755 .git/hooks/reference-transaction`,
    commits: /ref updates aborted by hook/,
  },
  {
    name: 'hooks elsewhere',
    make: `begin; mkdir .husky; printf '#!/bin/sh\\nexit 1\\n' > .husky/pre-commit; chmod 755 .husky/pre-commit
        git add -A; git commit -qm two; git config core.hooksPath .husky`,
    commits: /git said nothing/,
  },
  {
    name: 'signing without a key',
    make: 'begin; git config commit.gpgSign true; git config user.signingKey NOKEY; git config tag.gpgSign true',
  },
  { name: 'an untracked file of 10 GB', make: 'begin; truncate -s 10G huge.bin' },
  {
    name: 'nested repositories',
    make: `begin; git init -q -b main in; cd in; echo x > x; git add -A; git commit -qm in; cd ..
        echo in/ > .gitignore; git add -A; git commit -qm two`,
    also: { run: 'echo more >> in/x', lands: { 'in/x': 'x\nmore\n' } },
  },
  {
    name: 'a nested repository without a commit',
    make: 'begin; git init -q -b main in; echo x > in/x',
  },
  {
    name: 'a linked worktree',
    make: 'git init -q -b main $B/o; cd $B/o; files; git add -A; git commit -qm one; git worktree add -q -b work $W',
  },
  {
    name: 'a worktree of a worktree inside of it',
    make: `begin; git worktree add -q -b two wt; cd wt; git worktree add -q -b three wt2; cd ..
        echo wt/ >> .git/info/exclude`,
  },
  {
    name: 'a file .git',
    make: 'begin --separate-git-dir $B/gitdir',
  },
  {
    name: 'a linked worktree of a bare one',
    make: `git init -q -b main $B/o; cd $B/o; files; git add -A; git commit -qm one; git clone -q --bare $B/o $B/o.git
        git -C $B/o.git worktree add -q $W main`,
  },
  {
    name: 'an orphan branch',
    make: 'begin; git checkout -q --orphan next',
    copies: /begins from a commit, and no git repository of the workspace has one: make it/,
  },
  {
    name: 'a clone that is ahead and behind',
    make: `git init -q -b main $B/o; cd $B/o; files; git add -A; git commit -qm one; git clone -q $B/o $W
        echo x > sub/s.txt; git commit -qam two; cd $W; git commit -q --allow-empty -m own; git fetch -q`,
  },
  {
    name: 'a tag with the name of the branch',
    make: `begin; git commit -q --allow-empty -m two; git tag main HEAD~1; git tag heads/main HEAD~1
        git update-ref refs/main HEAD~1`,
  },
  {
    name: 'settings in a file of the repository',
    make: `files; printf '[core]\n\tautocrlf = true\n[alias]\n\tx = !false\n' > .gitconfig; git init -q -b main
        git config include.path ../.gitconfig; git add -A; git commit -qm first; rm *.txt; git checkout -q -- .`,
  },
  {
    name: 'a monitor of files that fails',
    make: `begin; printf '#!/bin/sh\nexit 1\n' > .git/hooks/monitor; chmod 755 .git/hooks/monitor
        git config core.fsmonitor .git/hooks/monitor; git update-index --fsmonitor 2>/dev/null`,
  },
  {
    name: 'a pointer that no .gitmodules names',
    make: `begin; mkdir ghost; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),ghost
        git commit -qm pointer`,
  },
  { name: 'a detached HEAD', make: 'begin; git commit -q --allow-empty -m two; git checkout -q HEAD~1' },
  { name: 'core.fileMode=false', make: 'begin; git config core.fileMode false; chmod 755 a.txt sub/s.txt' },
  { name: 'core.ignoreCase', make: 'begin; git config core.ignoreCase true' },
  {
    name: 'core.symlinks=false',
    make: `begin; ln -s a.txt link; git add -A; git commit -qm two; git config core.symlinks false; rm link
        printf a.txt > link`,
  },
  {
    name: 'links and modes',
    make: `files; chmod 755 a.txt; ln -s a.txt link; ln -s nowhere broken; ln -s sub folder; git init -q -b main
        git add -A; git commit -qm first`,
    also: { run: 'ln -sf a.txt folder/link; ln -sfn made link', lands: { link: 'made', 'sub/link': 'a.txt' } },
  },
  { name: 'a branch that is called agent', make: 'begin; git branch agent' },
  {
    name: 'branches of people below agent/',
    make: `begin; git commit -q --allow-empty -m two; git branch agent/one HEAD~1; git branch agent/two
        git branch sandbox`,
  },
  {
    name: 'uncommitted work and a stash',
    make: `begin; echo 1 > sub/s.txt; git stash -q; echo 2 > sub/s.txt; git add -A; echo 3 > sub/s.txt
        echo u > untracked.txt; echo ign > .git/info/exclude; echo i > ign; git add -N untracked.txt`,
  },
  {
    name: 'files that git calls unchanged',
    make: 'begin; git update-index --assume-unchanged sub/s.txt; echo local > sub/s.txt',
  },
  { name: 'a file that git skips', make: 'begin; git update-index --skip-worktree sub/s.txt; echo local > sub/s.txt' },
  {
    name: 'settings that change what git prints',
    make: `begin
        for s in diff.noprefix=true diff.mnemonicPrefix=true color.ui=always core.quotePath=true status.short=true \\
          status.branch=true status.showUntrackedFiles=no status.relativePaths=false diff.renames=false \\
          diff.external=/bin/false core.abbrev=4 log.showSignature=true log.decorate=full core.pager=false \\
          diff.algorithm=patience apply.whitespace=fix core.whitespace=cr-at-eol,-trailing-space \\
          i18n.commitEncoding=ISO-8859-1 core.commentChar=auto commit.verbose=true commit.cleanup=verbatim \\
          core.logAllRefUpdates=false diff.orderFile=/dev/null diff.interHunkContext=9 diff.context=0 \\
          column.ui=always rerere.enabled=true merge.conflictStyle=diff3 rebase.autoStash=true \\
          pull.rebase=true alias.status=log alias.x='!false' log.date=relative core.attributesFile=/dev/null \\
          feature.manyFiles=true
        do git config \${s%%=*} "\${s#*=}"; done`,
  },
  {
    name: 'settings of each worktree',
    make: `begin; git config extensions.worktreeConfig true; git config --worktree user.name W
        git worktree add -q -b two $B/wt`,
  },
  { name: 'a worktree that is named in the settings', make: 'begin; git config core.worktree $W' },
  {
    name: 'ignored files that are tracked',
    make: 'begin; echo "*.txt" > .gitignore; git add -A; git commit -qm two',
    ignores: true,
    notes: /^git ignores 1 new file of this private copy, so it is not committed and cannot land: /,
  },
  {
    name: 'merges with several parents',
    make: `begin; for n in 1 2 3; do git checkout -q -b t$n main; echo $n > f$n; git add -A; git commit -qm $n
        done; git checkout -q main; git merge -q -m octopus t1 t2 t3 2>/dev/null`,
  },
  {
    name: 'a commit in another encoding',
    make: `begin; printf 'caf\\351\\n' > $B/m
        git -c i18n.commitEncoding=ISO-8859-1 commit -q --allow-empty -F $B/m; git tag -a -m x v1
        git notes add -m note`,
  },
  {
    name: 'everything in packs, with a commit graph',
    make: `begin; git commit -q --allow-empty -m two; git gc -q --prune=now
        git commit-graph write --reachable 2>/dev/null; git multi-pack-index write --bitmap 2>/dev/null || :`,
  },
  {
    name: 'a broken ref and a lost branch',
    make: `begin; mkdir -p .git/refs/heads; echo 1111111111111111111111111111111111111111 > .git/refs/heads/lost
        echo rubbish > .git/refs/heads/broken; git symbolic-ref refs/heads/nowhere refs/heads/none`,
  },
  {
    name: 'a lock that a killed git left',
    make: 'begin; touch .git/index.lock',
    commits: /index\.lock of root is in the way/,
  },
]
