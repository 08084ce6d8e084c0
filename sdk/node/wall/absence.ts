import { ownProgram } from '../programs/own-programs.js'

/** What a daemon without a wall does, for the people who use it. */
export const WITHOUT_WALL =
  'there is no wall: turns and terminals can read and change everything that the user who runs the daemon can'

/** How this machine gets a wall, as the end of a sentence. */
export const howToWall = async (platform = process.platform): Promise<string> => {
  if (platform !== 'linux') return 'it needs Linux with bubblewrap, in a virtual machine or a container'
  return (await ownProgram('bwrap'))
    ? 'bubblewrap is installed and does not start, so allow user namespaces (sysctl user.max_user_namespaces, and '
        + 'kernel.apparmor_restrict_unprivileged_userns=0 where there is AppArmor)'
    : 'install bubblewrap (apt-get install bubblewrap)'
}
