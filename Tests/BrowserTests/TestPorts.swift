/// The ports of the studios and pages that need a port of their own, because they restart or because a test uses the
/// port after they have ended.
///
/// Suites run in parallel, so each test has another port. No default port is among them: those of the page of `--watch`, of studios and
/// of shared studios are 8093 to 8293.
enum TestPorts {
    static let restartedStudio = 8300
    static let crowdedStudio = 8301
    static let endedStudio = 8302
    static let privateStudio = 8303
    static let sharedStudio = 8304
    static let releasedPage = 8305
}
