// swift-tools-version: 6.2

import PackageDescription

let settings: [SwiftSetting] = [.enableUpcomingFeature("InternalImportsByDefault")]
// Optimization would double the time to compile tests. The tests of layers and images, which compute reference values, have it.
let testSettings = settings + [.unsafeFlags(["-Onone"], .when(configuration: .release))]

let package = Package(
    name: "imprint",
    platforms: [.macOS(.v15), .iOS(.v18)],
    products: [
        .library(
            name: "Imprint", targets: ["Imprint", "ImprintModel", "ImprintNetwork", "ImprintImages", "ImprintCore"]),
        .library(name: "ImprintTraining", targets: ["ImprintTraining", "ImprintSynthesis"]),
        .library(name: "ImprintInterop", targets: ["ImprintInterop"]),
        .library(name: "ImprintStore", targets: ["ImprintStore"]),
        .library(name: "ImprintBaseModels", targets: ["ImprintBaseModels"]),
        .library(name: "ImprintFleet", targets: ["ImprintFleet"]),
        // Only for the package in the folder Fuzzing.
        .library(name: "FuzzTargets", targets: ["FuzzTargets"]),
        .executable(name: "imprint", targets: ["imprint-cli"]),
        .plugin(name: "ImprintModels", targets: ["ImprintModels"]),
    ],
    traits: [
        .trait(name: "HEIC", description: "Reads HEIC photos through libheif, on Linux; small devices can do without."),
        .trait(
            name: "SVG", description: "Reads SVG artwork through librsvg, which is loaded at run time."),
        .trait(
            name: "Share",
            description: "Shares the studio on the local network through OpenSSL and libqrencode, loaded at run time."),
        .trait(
            name: "MPI", description: "Trains a model with several processes, on one or more machines, through MPI."),
        .default(enabledTraits: ["HEIC", "SVG", "Share"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/apple/swift-atomics", from: "1.3.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "3.12.0"),
        .package(url: "https://github.com/swhitty/FlyingFox", from: "0.27.1"),
    ],
    targets: [
        // System libraries, each with only a module map. On Apple platforms, Accelerate, ImageIO and Core Graphics replace all but MPI.
        .systemLibrary(
            name: "COpenBLAS", pkgConfig: "openblas",
            providers: [.apt(["libopenblas-dev"])]),
        .systemLibrary(
            name: "CTurboJPEG", pkgConfig: "libturbojpeg",
            providers: [.apt(["libturbojpeg0-dev"])]),
        .systemLibrary(
            name: "CPNG", pkgConfig: "libpng",
            providers: [.apt(["libpng-dev"])]),
        .systemLibrary(
            name: "CWebP", pkgConfig: "libwebp",
            providers: [.apt(["libwebp-dev"])]),
        .systemLibrary(
            name: "CHEIF", pkgConfig: "libheif",
            providers: [.apt(["libheif-dev"])]),
        .systemLibrary(
            name: "CLCMS", pkgConfig: "lcms2",
            providers: [.apt(["liblcms2-dev"])]),
        .systemLibrary(
            name: "CCURL", pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(
            name: "CMPI", pkgConfig: "ompi-c",
            providers: [.apt(["libopenmpi-dev", "openmpi-bin"]), .brew(["open-mpi"])]),

        // The modules; each depends only on modules above it.
        .target(name: "CImprintKernels", exclude: ["README.md"]),
        .target(
            name: "CDynamicLibrary", exclude: ["README.md"],
            linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]),
        .target(
            name: "CImprintCodecs",
            dependencies: [
                .target(name: "CPNG", condition: .when(platforms: [.linux])),
                .target(name: "CDynamicLibrary", condition: .when(traits: ["SVG"])),
            ],
            exclude: ["README.md"], cSettings: [.define("IMPRINT_SVG", .when(traits: ["SVG"]))]),
        .target(
            name: "CImprintShare",
            dependencies: [.target(name: "CDynamicLibrary", condition: .when(traits: ["Share"]))],
            exclude: ["README.md"], cSettings: [.define("IMPRINT_SHARE", .when(traits: ["Share"]))]),
        .target(
            name: "CImprintMPI",
            dependencies: [.target(name: "CMPI", condition: .when(traits: ["MPI"]))],
            exclude: ["README.md"], cSettings: [.define("IMPRINT_MPI", .when(traits: ["MPI"]))]),
        .target(
            name: "CImprintHTTP",
            dependencies: [.target(name: "CCURL", condition: .when(platforms: [.linux]))], exclude: ["README.md"]),
        .target(name: "CImprintBase", exclude: ["README.md", "marks.imprint", "logos.imprint"]),
        .target(name: "ImprintCore", exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintMPI", dependencies: ["ImprintCore", "CImprintMPI"], exclude: ["README.md"],
            swiftSettings: settings),
        .target(
            name: "ImprintImages",
            dependencies: [
                "ImprintCore", "CImprintKernels", "CImprintCodecs",
                .target(name: "CTurboJPEG", condition: .when(platforms: [.linux])),
                .target(name: "CPNG", condition: .when(platforms: [.linux])),
                .target(name: "CWebP", condition: .when(platforms: [.linux])),
                .target(name: "CLCMS", condition: .when(platforms: [.linux])),
                .target(name: "CHEIF", condition: .when(platforms: [.linux], traits: ["HEIC"])),
            ],
            exclude: ["README.md"], swiftSettings: settings,
            linkerSettings: [.linkedLibrary("z", .when(platforms: [.macOS, .iOS]))]),
        .target(
            name: "ImprintSynthesis", dependencies: ["ImprintCore", "ImprintImages", "CImprintKernels"],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintNetwork",
            dependencies: [
                "ImprintCore", "CImprintKernels", .target(name: "COpenBLAS", condition: .when(platforms: [.linux])),
            ],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintModel",
            dependencies: ["ImprintCore", "ImprintImages", "ImprintNetwork", "CImprintKernels"],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintInterop",
            dependencies: ["ImprintCore", "ImprintImages", "ImprintNetwork", "ImprintModel", "CImprintKernels"],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "Imprint",
            dependencies: [
                "ImprintCore", "ImprintImages", "ImprintNetwork", "ImprintModel",
                .product(name: "Atomics", package: "swift-atomics"),
            ],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintTraining",
            dependencies: [
                "Imprint", "ImprintCore", "ImprintImages", "ImprintSynthesis", "ImprintNetwork", "ImprintModel",
                "CImprintBase",
            ],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintBenchmarks",
            dependencies: [
                "Imprint", "ImprintCore", "ImprintModel", "ImprintImages", "ImprintNetwork", "ImprintSynthesis",
                "ImprintTraining",
            ],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintLive",
            dependencies: [
                "Imprint", "ImprintCore", "ImprintModel", "ImprintTraining", "CImprintShare",
                .product(name: "FlyingFox", package: "FlyingFox"),
            ],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintStore",
            dependencies: [
                "Imprint", "ImprintCore", "ImprintModel", "ImprintImages", "CImprintHTTP",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintBaseModels",
            dependencies: [
                "ImprintCore", "ImprintNetwork", "ImprintModel", "ImprintInterop", "ImprintTraining", "ImprintStore",
            ],
            exclude: ["README.md"], resources: [.embedInCode("Catalog")], swiftSettings: settings),
        .target(
            name: "ImprintFleet",
            dependencies: [
                "Imprint", "ImprintCore", "ImprintModel", "ImprintImages", "ImprintInterop", "ImprintStore",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            exclude: ["README.md"], swiftSettings: settings),
        .target(
            name: "ImprintStudio",
            dependencies: [
                "Imprint", "ImprintCore", "ImprintModel", "ImprintImages", "ImprintSynthesis", "ImprintTraining",
                "ImprintLive", "ImprintBaseModels", "ImprintInterop",
                .product(name: "FlyingFox", package: "FlyingFox"),
            ],
            exclude: ["README.md"], resources: [.embedInCode("Page")], swiftSettings: settings),
        .target(
            name: "ImprintServe",
            dependencies: [
                "Imprint", "ImprintCore", "ImprintModel", "ImprintNetwork", "ImprintImages",
                .product(name: "FlyingSocks", package: "FlyingFox"),
            ],
            exclude: ["README.md"], swiftSettings: settings),
        // Code that runs before the shared libraries of the command-line tool are initialized; only for executables.
        .target(name: "CStartup", exclude: ["README.md"]),
        .executableTarget(
            name: "imprint-cli",
            dependencies: [
                "Imprint", "ImprintModel", "ImprintInterop", "ImprintNetwork", "ImprintImages", "ImprintSynthesis",
                "ImprintCore", "ImprintTraining", "ImprintBaseModels", "ImprintBenchmarks", "ImprintLive",
                "ImprintStudio", "ImprintServe", "ImprintFleet", "ImprintMPI", "ImprintStore",
                "CStartup",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["README.md"], swiftSettings: settings),

        // Trains the logo features in CImprintBase.
        .executableTarget(
            name: "LogoFeatureTrainer",
            dependencies: [
                "Imprint", "ImprintCore", "ImprintImages", "ImprintModel", "ImprintNetwork", "ImprintSynthesis",
                "ImprintTraining",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["README.md"], swiftSettings: settings),

        // Generates the Swift type of a model. Users of the plugin build it, so it has no dependencies.
        .executableTarget(name: "ImprintModelGenerator", exclude: ["README.md"], swiftSettings: settings),
        .plugin(name: "ImprintModels", capability: .buildTool(), dependencies: ["ImprintModelGenerator"]),

        .target(name: "TestSupport", dependencies: ["ImprintCore"], path: "Tests/TestSupport", swiftSettings: settings),
        .target(name: "CHeapMeter", path: "Tests/CHeapMeter"),
        // The readers of untrusted bytes that libFuzzer calls.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "ImprintModel", "ImprintInterop", "ImprintNetwork", "ImprintImages", "ImprintSynthesis",
                "ImprintTraining", "ImprintServe", "ImprintStore",
            ],
            path: "Tests/FuzzTargets", swiftSettings: settings),
        // Reads safetensors files, to compare the results with those of another program.
        .executableTarget(
            name: "SafetensorsReader", dependencies: ["ImprintModel", "ImprintCore"], path: "Tests/SafetensorsReader",
            swiftSettings: settings),
        // A process that tests kill while it saves a model.
        .executableTarget(
            name: "SaveLoop", dependencies: ["ImprintModel", "ImprintNetwork", "ImprintImages"], path: "Tests/SaveLoop",
            swiftSettings: settings),
        // A process that tests kill while it installs models and rolls back.
        .executableTarget(
            name: "InstallLoop", dependencies: ["ImprintStore"], path: "Tests/InstallLoop", swiftSettings: settings),
        // A process that uses a model while tests change its file.
        .executableTarget(
            name: "ModelReader", dependencies: ["Imprint", "ImprintModel", "ImprintImages"], path: "Tests/ModelReader",
            swiftSettings: settings),
        // The app of docs/tutorials/ship-a-model.md.
        .executableTarget(
            name: "TutorialApp", dependencies: ["Imprint", "ImprintStore"], path: "Tests/TutorialApp",
            swiftSettings: settings),
        .testTarget(
            name: "ImprintCoreTests", dependencies: ["ImprintCore", "TestSupport"], swiftSettings: testSettings),
        .testTarget(
            name: "ImprintImagesTests", dependencies: ["ImprintImages", "ImprintSynthesis", "TestSupport"],
            exclude: ["Fixtures"],
            swiftSettings: settings),
        .testTarget(
            name: "ImprintNetworkTests", dependencies: ["ImprintNetwork", "CImprintKernels", "TestSupport"],
            exclude: ["Fixtures"], swiftSettings: settings),
        .testTarget(
            name: "FileFormatTests",
            dependencies: ["ImprintModel", "ImprintInterop", "CImprintKernels", "CHeapMeter", "TestSupport"],
            exclude: ["Fixtures"], swiftSettings: testSettings),
        .testTarget(
            name: "FuzzTargetTests", dependencies: ["FuzzTargets", "SafetensorsReader", "TestSupport"],
            swiftSettings: testSettings),
        .testTarget(
            name: "ImprintTests",
            dependencies: [
                "Imprint", "ImprintTraining", "ImprintInterop", "ImprintStore", "ImprintBaseModels", "ImprintFleet",
                "CHeapMeter", "TestSupport",
            ],
            exclude: ["Fixtures"],
            swiftSettings: testSettings),
        .testTarget(
            name: "ImprintStoreTests",
            dependencies: [
                "ImprintStore", "Imprint", "ImprintModel", "ImprintCore", "InstallLoop", "ModelReader", "TestSupport",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            swiftSettings: testSettings),
        .testTarget(
            name: "ImprintFleetTests",
            dependencies: [
                "ImprintFleet", "Imprint", "ImprintModel", "ImprintImages", "ImprintInterop", "ImprintSynthesis",
                "ImprintTraining", "ImprintStore", "ImprintCore", "TestSupport", "imprint-cli",
                .product(name: "Crypto", package: "swift-crypto"),
            ],
            exclude: ["Fixtures"], swiftSettings: testSettings),
        .testTarget(
            name: "ImprintBaseModelsTests",
            dependencies: [
                "ImprintBaseModels", "ImprintTraining", "ImprintInterop", "ImprintModel", "ImprintNetwork",
                "ImprintImages",
                "ImprintCore", "TestSupport", "imprint-cli",
            ],
            swiftSettings: testSettings),
        .testTarget(
            name: "BrowserTests",
            dependencies: [
                "Imprint", "ImprintModel", "ImprintNetwork", "ImprintImages", "ImprintSynthesis", "ImprintCore",
                "ImprintTraining", "ImprintLive", "ImprintBaseModels",
                "ImprintStudio", "TestSupport", "imprint-cli",
                .product(name: "FlyingFox", package: "FlyingFox"),
                .product(name: "FlyingSocks", package: "FlyingFox"),
            ],
            exclude: ["Fixtures"], swiftSettings: testSettings),
        .testTarget(
            name: "ImprintServeTests",
            dependencies: [
                "ImprintServe", "Imprint", "ImprintModel", "ImprintNetwork", "ImprintImages", "ImprintCore",
                "TestSupport",
                "imprint-cli",
            ],
            exclude: ["Fixtures"], swiftSettings: testSettings),
        .testTarget(
            name: "ImprintModelGeneratorTests",
            dependencies: ["ImprintModelGenerator", "Imprint", "ImprintTraining", "TestSupport"],
            exclude: ["Fixtures"], swiftSettings: testSettings),
        // Builds docs/examples and temporary packages like a user.
        .testTarget(
            name: "ExampleTests",
            dependencies: [
                "ImprintModel", "ImprintInterop", "ImprintImages", "ImprintNetwork", "TestSupport", "imprint-cli",
                "TutorialApp",
            ],
            swiftSettings: testSettings),
        .testTarget(
            name: "ImprintBenchmarksTests", dependencies: ["ImprintBenchmarks", "TestSupport"],
            swiftSettings: testSettings),
        .testTarget(
            name: "CLITests",
            dependencies: [
                "ImprintCore", "ImprintImages", "ImprintSynthesis", "ImprintNetwork", "ImprintModel", "ImprintInterop",
                "ImprintTraining", "ImprintStore", "ImprintMPI", "TestSupport", "imprint-cli",
                "SaveLoop",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["Fixtures"], swiftSettings: testSettings),
    ],
    swiftLanguageModes: [.v6]
)
