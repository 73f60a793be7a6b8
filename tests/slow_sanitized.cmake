# Tests that take half a minute or more under the sanitizers and only run the code of other tests on more rows, values or
# shapes. They have the label `slow_sanitized`, which .ci/run leaves out where it sanitizes. A name may end with *.
set(slow_sanitized
  # Other programs: a browser, several processes, an installed copy.
  ReportPage.*
  Trace.OpensInSpeedscope
  Install.IsEnoughForOthers
  Sweep.GoesOnWithoutALostRank
  Sweep.OnSeveralComputersIsThatOfOneProcess
  Sweep.SurvivesKillsAtRandomMoments
  Interrupt.BeingTerminatedIsLikeCtrlCButEndsWith143
  Interrupt.CtrlCEarlyInALongSearchEndsWith130AndTheBestSoFar
  # Everything that is stored.
  PublishedNumbers.ArePredictedWithinTheirBounds
  PublishedRanking.*
  StoredMeasurements.*
  # Fits: a simulation for every parameter and row.
  ShippedMachine.*
  CalibrateLinks.*
  Calibrate.ALoadClockOfWholeProductsLeavesNoEnergies
  Calibrate.AValueThatContradictsTheRowsMovesToWhereItNoLongerDoes
  Calibrate.EqualInputGivesEqualOutput
  Calibrate.FindsWhatFewWorkgroupsLeaveIdleOfAFullLink
  Factors/CalibrateFrom*
  Rates/FlatLink*
  Rates/Port*
  # Searches, all but Advise.TriesWhatTheSelectorProposes.
  Advise.AnotherWorkloadIsSearchedWithItsPatternsAndKnobs
  Advise.AnswersTheSameOnAnyNumberOfThreads
  Advise.DoesNotDependOnTheNumberOfThreads
  Advise.DrawsTheWinnerAndTheBaselineWithOtherSeedsToo
  Advise.ExplainsTheWinnerWithItsOwnNumbers
  Advise.FindsForAPatternTheTileThatIsBestForAnother
  Advise.GivesEveryPatternOnceBestFirst
  Advise.HasOneCandidateAPatternBestFirst
  Advise.HoldsTheKnobsOfAScenario
  Advise.HoldsTheKnobsThatAreGiven
  Advise.IsNotBeatenBySmallTilesAtDecodeSizes
  Advise.IsNotWorseThanTheDefaultKnobsForAnyPattern
  Advise.ItsKnobsInJsonAreKnobsOfAScenario
  Advise.KeepsPinnedKnobs
  Advise.KnobsOfACandidateAreThoseThatItsPatternHas
  Advise.LeavesNoSingleChangeOfAKnobThatGainsMoreThanOnePercent
  Advise.RefusesAnUnknownSelectorWithTheList
  Advise.RefusesMoreGpusThanTheMachineHas
  Advise.RefusesPinsThatNoPatternCanUse
  Advise.ReportsProgressThatAddsUp
  Advise.ReportsWhatSimulationOfTheReportedKnobsGives
  Advise.SavesItsRowsAsScenariosThatTakeAsLong
  Advise.SaysWhatStaggeredPeersGainOverTheFixedOrder
  Advise.SpeedupIsOverTheLibraryBaseline
  Advise.StoppedAtTheFirstReportHasTheDefaultKnobsOfEveryPattern
  Advise.StoppedBeforeItStartsHasNoCandidates
  Advise.StopsWhenAskedWithTheBestSoFar
  Advise.TheCommandOfEveryRowMakesItAgain
  Advise.TheTileOfTheLibraryIsTheOneOfItsSchedule
  Advise.TheWinnerCanBeSimulatedWithItsKnobsToTheSameTime
  Advise.WorksOnOneGpuAndOnTinyMatrices
  Ask.SeveralQuestionsAreOneTableOfAll
  Program.OutputThatIsNoTerminalHasNoColoursAndNoProgressBar
  # Every workload or pattern, each asked of several commands.
  EveryPatternsClocks.*
  EveryPatternsFloor.*
  OneVerdictOfAll.*
  Workloads/OneVerdict.*
  # Long, and of patterns or a cache whose other tests stay.
  CheckLimits.ABuilderRefusesSchedulesThatNobodyCouldSimulate
  ModelTime.NothingBeatsTheRooflineAndFusingNeverCosts
  PagedAttentionLaw.AnyBatchAndKnobsGiveTheResultOfAllKeys
  ReuseCache.AgreesWithTheLruInLockStep
  FlashDecode.IsSoundAndRightForEveryPatternDtypeAndNumberOfGpus
  Moe.UnevenExpertsCostTime
  LibrarySchedule.TakesOnAnotherMachineWhatThePatternTakesThere
  AttentionMapping.IsABijectionOrRefusedForEveryListedCase
  # All knobs of all searches.
  EveryWorkloadsSpace.*
  Ulysses.IsSoundAndRightForEveryPatternDtypeAndNumberOfGpus
  UlyssesLaw.AnySizeAndKnobsGiveTheResultOfTheWholeSequence)

# slow_sanitized_among(OUT NAMES…): those of the names that are in the list.
function(slow_sanitized_among out)
  set(found "")
  foreach(name ${ARGN})
    foreach(slow ${slow_sanitized})
      string(REGEX REPLACE "\\*$" "" start "${slow}")
      string(FIND "${name}" "${start}" at)
      if(name STREQUAL slow OR (NOT start STREQUAL slow AND at EQUAL 0))
        list(APPEND found "${name}")
        break()
      endif()
    endforeach()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()
