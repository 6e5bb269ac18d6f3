// swift-tools-version: 6.2

import PackageDescription

// A separate package, because only programs that are built with a sanitizer contain libFuzzer. README.md has the commands.
let package = Package(
    name: "imprint-fuzzing",
    platforms: [.macOS(.v15)],
    // SVG artwork needs a library that is loaded at run time, and the studio is not fuzzed.
    dependencies: [.package(name: "imprint", path: "..", traits: ["HEIC"])],
    targets: [
        // One program for all targets; its name selects the target.
        .executableTarget(name: "fuzz", dependencies: [.product(name: "FuzzTargets", package: "imprint")])
    ],
    swiftLanguageModes: [.v6]
)
